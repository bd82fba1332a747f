"""The base class of states, and of the steps between them, in the tables of the protocol."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """A state, or a step between two. Members are hashed by identity: Enum hashes their names, in Python code, and
    each frame looks a dozen of them up."""

    __hash__ = object.__hash__

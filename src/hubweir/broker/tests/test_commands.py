"""The classes of the seam between gateway and broker: values that nobody changes on the way."""

from __future__ import annotations

import dataclasses
import inspect
import typing

import pytest

from hubweir.broker import commands
from hubweir.broker.commands import Answer, Command, Owner, Push, Refusal

CLASSES = [made for _, made in inspect.getmembers(commands, inspect.isclass) if made.__module__ == commands.__name__]
PARTS = {Owner}  # of other classes; never sent by itself


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: made.__name__)
def test_every_class_is_a_frozen_value_without_room_for_more(made: type) -> None:
    assert dataclasses.is_dataclass(made)
    assert made.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(made)


def test_every_class_is_a_command_an_answer_or_a_push_and_only_one_of_them() -> None:
    kinds = [set(typing.get_args(kind)) or {kind} for kind in (Command, Answer, Push)]
    assert set.union(*kinds) | PARTS == set(CLASSES)
    assert sum(len(kind) for kind in kinds) == len(set.union(*kinds))


def test_what_is_refused_was_not_stored_unless_it_says_otherwise() -> None:
    assert Refusal("amqp:not-found", "").known
    assert not Refusal("com.microsoft:timeout", "", known=False).known


def test_owners_are_told_apart_by_process_and_by_connection() -> None:
    assert Owner(1, 2) == Owner(1, 2)
    assert len({Owner(1, 2), Owner(2, 1), Owner(1, 3), Owner(1, 2)}) == 3

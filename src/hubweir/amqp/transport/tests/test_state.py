"""States are found in tables by identity, without a call of Python code."""

from __future__ import annotations

import sys
from enum import auto
from types import FrameType

from hubweir.amqp.transport.state import State


class Light(State):
    RED = auto()
    GREEN = auto()


def test_a_state_is_found_in_tables_and_equal_to_itself_alone() -> None:
    table = {(Light.RED, Light.GREEN): "go"}
    assert table[Light(1), Light["GREEN"]] == "go" and Light.RED in frozenset(Light)
    assert len({*Light, *Light}) == 2 and Light.RED != Light.GREEN


def test_a_look_up_calls_no_python_code() -> None:
    table, calls = {Light.RED: 1}, []

    def seen(frame: FrameType, event: str, argument: object) -> None:
        calls.append(frame.f_code.co_name) if event == "call" else None

    sys.setprofile(seen)
    found = table[Light.RED]
    sys.setprofile(None)
    assert found == 1 and calls == []

"""The pace of a machine, measured beside a test: what it holds, and that it hides no error."""

from __future__ import annotations

import threading
import time

import pytest

from tests.conformance.ordinary_pace import OrdinaryPace


def test_the_slowest_operation_counts_also_when_it_is_the_one_under_way_at_the_end() -> None:
    is_slow, goes_on = threading.Event(), threading.Event()
    done: list[float] = []

    def operation() -> None:
        if len(done) == 2:
            is_slow.set()
            goes_on.wait(30)
        done.append(time.monotonic())

    with OrdinaryPace(operation) as pace:
        assert is_slow.wait(30)
        begin = time.monotonic()
        timer = threading.Timer(0.3, goes_on.set)
        timer.start()
    assert len(done) == 3
    assert pace.slowest_s >= done[-1] - begin >= 0.2


def test_what_an_operation_raises_is_raised_at_the_end() -> None:
    def operation() -> None:
        raise ValueError("of the operation")

    with pytest.raises(ValueError, match="of the operation"), OrdinaryPace(operation) as pace:
        pace._thread.join(30)


def test_an_error_of_the_test_is_not_hidden_behind_the_operations() -> None:
    def operation() -> None:
        raise ValueError("of the operation")

    with pytest.raises(KeyError), OrdinaryPace(operation) as pace:
        pace._thread.join(30)
        raise KeyError("of the test")


def test_one_operation_is_done_beside_a_test_however_short() -> None:
    done = []
    with OrdinaryPace(lambda: done.append(1)) as pace:
        pass
    assert done and pace.slowest_s > 0

"""log.py: whoever waits is told, whatever becomes of the others."""

from __future__ import annotations

import pytest

from hubweir.messaging_store.log import call_all


def test_all_are_called_and_the_first_fault_of_several_is_raised() -> None:
    called = []

    def call(number: int) -> None:
        called.append(number)
        if number % 2:
            raise ValueError(f"of {number}")

    with pytest.raises(ValueError, match="of 1"):
        call_all(lambda number=number: call(number) for number in range(5))  # type: ignore[misc]
    assert called == [0, 1, 2, 3, 4]
    call_all(lambda: called.append(9) for _ in range(2))
    assert called[5:] == [9, 9]

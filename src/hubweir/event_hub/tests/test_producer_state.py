from __future__ import annotations

import pytest

from hubweir.errors import ServiceError
from hubweir.event_hub.producer_state import (
    Kept,
    NumberedSend,
    ProducerState,
    check_range,
    of_an_older_round,
    stolen,
)


def test_a_transfer_ends_with_its_last_event() -> None:
    assert NumberedSend(7, 0, first_number=4, count=3).last == 6


def test_a_fence_alone_stores_nothing() -> None:
    assert not ProducerState(0, 0, 0).has_stored
    assert not ProducerState(2, 57, 57, Kept(7, 2, 0, 1)).has_stored
    assert ProducerState(2, 4, 3, Kept(7, 2, 3, 1)).has_stored


def test_a_producer_is_settled_when_nothing_of_it_is_on_its_way() -> None:
    assert ProducerState(0, 3, 3).is_settled and not ProducerState(0, 4, 3).is_settled


def test_a_value_out_of_range_is_named_with_its_range() -> None:
    check_range("epoch", None, 3)
    check_range("epoch", 3, 3)
    for value in (-1, 4):
        with pytest.raises(ServiceError, match=f"epoch is {value}; 0 to 3"):
            check_range("epoch", value, 3)


def test_refusals_name_rounds_as_the_sink_counts_them() -> None:
    assert "round 4" in of_an_older_round(7, 5, 9).text and "round 8" in of_an_older_round(7, 5, 9).text
    assert "no round" in of_an_older_round(7, 0, 9).text
    assert "expired" in stolen(7, 1, None).text and "epoch 3" in stolen(7, 1, 3).text

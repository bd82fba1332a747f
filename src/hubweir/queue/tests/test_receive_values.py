"""What is said of a receive on its way: changed properties by place, and the answer without messages."""

from __future__ import annotations

from array import array

from hubweir.queue.receive_values import changes_of, nothing_received
from hubweir.queue.tests.conftest import QueueBench


def test_changed_properties_are_told_by_the_place_of_their_message() -> None:
    core = QueueBench().fragment.core
    counts = array("q", [7, 3, 9])
    assert changes_of(core, counts) == {}
    core.state.changed.update({3: b"of 3", 9: b"of 9", 4: b"of another"})
    assert changes_of(core, counts) == {1: b"of 3", 2: b"of 9"}


def test_an_answer_without_messages_has_no_rows_and_no_records() -> None:
    answer = nothing_received()
    assert (bytes(answer.run), len(answer.rows)) == (b"", 0)
    assert nothing_received().rows is not answer.rows

"""What a topic's log says, taken in run by run, and as a snapshot; what a crash could leave is refused or whole."""

from __future__ import annotations

from array import array

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.operations import pack_operations
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.fragment_snapshot import encode_snapshot
from hubweir.queue.operation import SETTINGS, SETTLED, Operation, encode_operation, logged_settings
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.tests.conftest import message, run_of
from hubweir.topic.tests.topic_bench import TopicBench, sql
from hubweir.topic.topic_operation import added, changed, copied, prefix_of, removed
from hubweir.topic.topic_state import TopicState, decode_topic, encode_topic

SAID = encode_operation(Operation(SETTINGS, settings=logged_settings(FragmentSettings())))


def state_with(*names: str) -> TopicState:
    """A topic with these subscriptions, and no messages."""
    state = TopicState()
    records = [SAID]
    for number, name in enumerate(names, 1):
        records += [added(number, name), prefix_of(number) + SAID]
    state.apply_run(pack_operations(records), is_replay=True)
    return state


def take(state: TopicState, *records: bytes) -> None:
    state.apply_run(pack_operations(records), is_replay=True)


def encoded(state: TopicState) -> bytes:
    return encode_topic(
        state, lambda number: encode_snapshot(state.own if number is None else state.subscriptions[number].state, ())
    )


def live(state: TopicState, number: int) -> int:
    return sum(page.live for page in state.subscriptions[number].state.messages.pages.values())


def test_copies_are_made_of_what_is_there_and_of_that_alone() -> None:
    state = state_with("a", "b")
    state.apply_run(run_of(message("one"), message("two")), is_replay=True)
    take(state, copied([1, 2], array("q", [1, 1])), encode_operation(Operation(SETTLED, array("q", [1, 1]))))
    assert (live(state, 1), live(state, 2)) == (1, 1)
    take(state, copied([1], array("q", [1, 2])))  # the first is gone: a chain that is appended again copies it no more
    assert (live(state, 1), live(state, 2)) == (2, 1)


def test_what_is_said_of_a_subscription_that_is_gone_does_nothing() -> None:
    state = state_with("a", "b")
    state.apply_run(run_of(message("one")), is_replay=True)
    take(state, removed(1), copied([1, 2], array("q", [1, 1])), prefix_of(1) + SAID, removed(1))
    assert list(state.subscriptions) == [2] and live(state, 2) == 1
    assert state.number_of("a") is None and state.number_of("b") == 2


def test_of_a_run_that_begins_before_the_index_only_the_rest_is_taken_in() -> None:
    state = TopicState()
    run = pack_operations([added(1, "a")])
    state.apply_run(run, is_replay=True, from_index=1)
    assert not state.subscriptions
    state.apply_run(run, is_replay=True, from_index=0)
    assert list(state.subscriptions) == [1]


def test_a_number_is_never_given_twice() -> None:
    state = state_with("a", "b")
    assert state.next_number == 3
    take(state, removed(2))
    assert decode_topic(encoded(state)).next_number == 3
    take(state, added(9, "c"), added(4, "d"))
    assert state.next_number == 10


def test_records_of_copies_that_nobody_named_are_refused() -> None:
    state = state_with("a")
    state.apply_run(run_of(message("one")), is_replay=True)
    take(state, changed([(1, 1)]))
    with pytest.raises(CorruptStore, match="nobody named"):
        state.apply_run(run_of(message("x"), message("y")), is_replay=True)


def test_copies_before_settings_are_refused() -> None:
    state = state_with()
    state.apply_run(run_of(message("one")), is_replay=True)
    take(state, added(1, "a"))
    with pytest.raises(CorruptStore, match="before there were settings"):
        take(state, copied([1], array("q", [1, 1])))


def test_a_snapshot_comes_back_as_it_was_and_no_part_of_it_does() -> None:
    state = state_with("a", "b\u00e9")
    state.apply_run(run_of(message("one"), message("two", session="s")), is_replay=True)
    take(state, copied([2], array("q", [1, 2])))
    data = encoded(state)
    again = decode_topic(data)
    assert encoded(again) == data
    assert [each.subscription_id for each in again.subscriptions.values()] == ["a", "b\u00e9"]
    assert [each.session_id for each in again.own.sessions.by_number.values()] == [b"s"]
    for end in range(1, len(data), 7):
        with pytest.raises((CorruptStore, NewerFormat)):
            decode_topic(data[:end])
    with pytest.raises(CorruptStore):
        decode_topic(data + b"x")
    with pytest.raises(NewerFormat):
        decode_topic(b"\x02" + data[1:])


def test_what_subscriptions_hold_together_is_known_through_all_that_happens() -> None:
    def check() -> int:
        held: int = topic.topic._state.held.total
        assert held == sum(topic.fragment_of(name).core.stored_bytes for name in names)
        return held

    topic, names = TopicBench(), ["a", "b", "c"]
    topic.subscribe("a")
    topic.subscribe("b", rules=[sql("1 = 1", "SET a = 1")])
    topic.subscribe("c")
    topic.send("x" * 100)
    topic.send("y" * 200)
    full = check()
    assert full > 900
    topic.of("a").complete(topic.of("a").receive(max_count=1))
    topic.of("b").settle(topic.of("b").receive(max_count=1), SettleOutcome.DEAD_LETTER)
    left = check()
    assert left < full
    names.remove("c")
    topic.unsubscribe("c")
    last = check()
    assert 0 < last < left
    topic.restart()
    assert check() == last
    topic.topic.upkeep.snapshot_records = 0
    topic.maintained()
    topic.restart()
    assert check() == last

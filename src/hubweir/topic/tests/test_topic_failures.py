"""A topic in trouble: ends that meet moves, disks that refuse, messages that nobody can read."""

from __future__ import annotations

from array import array

import pytest

from hubweir.messaging_store.operations import pack_operations
from hubweir.queue.fragment_snapshot import encode_snapshot
from hubweir.queue.operation import SETTINGS, LoggedSettings, Operation, encode_operation
from hubweir.queue.tests.conftest import bodies, message, run_of
from hubweir.testing.memory_faults import Fault
from hubweir.topic import fan_out
from hubweir.topic.rule import Rule
from hubweir.topic.tests.topic_bench import ALL, Subscribed, TopicBench, sql
from hubweir.topic.topic_fragment import TopicFragment
from hubweir.topic.topic_operation import added, copied, partly, prefix_of
from hubweir.topic.topic_state import TopicState, decode_topic, encode_topic


@pytest.fixture
def topic() -> TopicBench:
    return TopicBench()


def of_all(topic: TopicBench, name: str) -> list[str]:
    return bodies(topic.of(name).peek())


def test_records_that_were_moved_for_a_subscription_that_is_gone_are_nobody_s_messages(topic: TopicBench) -> None:
    topic.subscribe("goes")
    topic.subscribe("stays")
    topic.send(*map(str, range(5)))
    topic.of("stays").complete(topic.of("stays").receive())
    topic.topic.upkeep.slack_bytes = -(1 << 40)
    del topic.subscriptions["goes"]
    topic.topic.remove_subscription("goes", topic.times(), lambda _: None)
    topic.topic.maintain(topic.times())  # begins to move what it has, behind the word of its end
    topic.run_for(2_000)
    assert topic.fragment.was_sent_to and topic.send("next") == [6]
    for _ in range(2):
        assert of_all(topic, "stays") == ["next"]
        topic.restart()


def test_reads_that_fail_are_tried_again_after_a_moment(topic: TopicBench, monkeypatch: pytest.MonkeyPatch) -> None:
    topic.subscribe("a", rules=[sql("1 = 1", "SET a = 1")])
    monkeypatch.setattr(TopicFragment, "begin", lambda self: None)
    topic.restart()
    topic.send("waits")
    topic.restart()  # so that it is not in memory
    monkeypatch.undo()
    plan = topic.env.files.plan(Fault.EIO, forever=True, call="read")
    topic.topic.begin()
    topic.run_for(10_000)
    assert 5 < plan.fired < 30
    topic.env.files.heal()
    topic.run_for(1_100)
    assert of_all(topic, "a") == ["waits"]


def test_a_message_that_an_action_cannot_write_anew_is_a_dead_letter_and_holds_nobody_up(topic: TopicBench) -> None:
    topic.subscribe("acts", rules=[sql("1 = 1", "SET sys.Label = 'x'")])
    topic.subscribe("plain")
    topic.enqueue(message("bad", message_id="ABCDE").replace(b"ABCDE", b"\xff\xfe\xfd\xfc\xfb"))
    topic.send("good")
    counts = topic.fragment_of("acts").counts()
    assert (counts.dead_lettered, counts.active) == (1, 1) and topic.fragment_of("plain").counts().active == 2
    assert of_all(topic, "acts") == ["good"] and topic.fragment.counts().active == 0


def acting(number: int) -> list[Rule]:
    """Rules that make three copies of every message, of which an action changes two."""
    return [sql("1 = 1", f"SET mine = {number}", name=f"act {each}") for each in range(2)] + [ALL]


@pytest.mark.parametrize("crash_after_ms", [None, 0, 1, 3, 10, 30])
def test_a_message_of_many_changed_copies_is_with_all_once_through_a_crash(
    monkeypatch: pytest.MonkeyPatch, topic: TopicBench, crash_after_ms: int | None
) -> None:
    monkeypatch.setattr(fan_out, "CHANGED_BYTES", 5_000)
    chains = list[int]()
    chain_of = fan_out.chain_of
    monkeypatch.setattr(fan_out, "chain_of", lambda *parts: chains.append(len(run := chain_of(*parts))) or run)
    names = [f"s{number}" for number in range(12)]
    for number, name in enumerate(names):
        topic.subscribe(name, rules=acting(number))
    topic.subscribe("plain")
    topic.topic.upkeep.snapshot_records = 1
    answers = list[object]()
    texts = ["a" * 1_000, "b" * 10, "c" * 1_000]
    topic.fragment.enqueue(run_of(*map(message, texts)), 3, topic.times(), answers.append)
    while not answers:
        topic.run_for(1)
    if crash_after_ms is not None:
        topic.run_for(crash_after_ms)
        topic.topic.maintain(topic.times())
        topic.run_for(1)
        topic.restart()
    topic.run_for(5_000)
    for _ in range(2):
        for number, name in enumerate(names):
            got = topic.of(name).peek()
            assert [each.number for each in got] == list(range(1, 10))
            assert bodies(got) == [text for text in texts for _ in range(3)]
            assert [(each.properties or {}).get("mine") for each in got] == [number, number, None] * 3
        assert of_all(topic, "plain") == texts and topic.fragment.counts().active == 0
        topic.restart()
    assert len(chains) > 8 and max(chains) < 12_000


def test_a_subscription_that_ends_between_two_parts_of_a_message_keeps_nobody_from_theirs(
    monkeypatch: pytest.MonkeyPatch, topic: TopicBench
) -> None:
    monkeypatch.setattr(fan_out, "CHANGED_BYTES", 1_000)
    for number in range(6):
        topic.subscribe(f"s{number}", rules=acting(number))
    topic.fragment.enqueue(run_of(message("a" * 1_000)), 1, topic.times(), lambda _: None)
    while not topic.topic._state.places:
        topic.run_for(1)
    topic.unsubscribe("s4")
    topic.run_for(1_000)
    assert [len(topic.of(name).peek()) for name in topic.subscriptions] == [3] * 5
    topic.restart()
    assert [len(topic.of(name).peek()) for name in topic.subscriptions] == [3] * 5


def test_part_of_a_message_that_stands_twice_in_the_log_is_made_once(topic: TopicBench) -> None:
    state = TopicState()
    settings = encode_operation(Operation(SETTINGS, settings=LoggedSettings()))
    state.apply_run(pack_operations([settings, added(1, "a"), prefix_of(1) + settings]), is_replay=True)
    state.apply_run(run_of(message("one")), is_replay=True)
    part = pack_operations([partly(1, (0, 0), (1, 1), 1), copied([1], array("q", [1, 1]))])
    for _ in range(2):
        state.apply_run(part, is_replay=True)
    assert state.subscriptions[1].state.messages.next_count == 2 and state.places == {1: (1, 1)}
    own, inner = encode_snapshot(state.own, ()), encode_snapshot(state.subscriptions[1].state, ())
    assert decode_topic(encode_topic(state, lambda number: inner if number else own)).places == state.places
    state.apply_run(pack_operations([copied([1], array("q", [1, 1]))]), is_replay=True)
    assert state.subscriptions[1].state.messages.next_count == 3


def test_two_subscriptions_that_come_at_once_are_two(topic: TopicBench) -> None:
    answers = list[object]()
    for name in ("a", "b"):
        topic.subscriptions[name] = Subscribed(rules=(sql(f"for = '{name}'"),))
        topic.topic.add_subscription(name, topic.subscriptions[name].settings, topic.times(), answers.append)
    topic.run_for(500)
    assert answers == [None, None]
    for name in ("a", "b"):
        topic._open_subscription(name)
    for _ in range(2):
        topic.send("to a", properties={"for": "a"})
        assert set(of_all(topic, "a")) == {"to a"} and of_all(topic, "b") == []
        topic.restart()


def test_behind_a_snapshot_messages_enter_sessions_as_before(topic: TopicBench) -> None:
    topic.subscribe("sessions", requires_session=True)
    topic.send("one", session="s")
    topic.topic.upkeep.snapshot_records = 1
    topic.maintained()
    topic.restart()
    assert topic.topic.upkeep.snapshot_index > 0
    topic.send("two", session="s")
    assert bodies(topic.of("sessions").peek(session="s")) == ["one", "two"]


def test_nothing_is_kept_of_copies_that_were_made_nor_of_sessions_that_are_empty(topic: TopicBench) -> None:
    topic.subscribe("a", rules=[sql("1 = 1", "SET a = 1")])
    for number in range(20):
        topic.send("x", session=f"{number}")
    state = topic.topic._state
    assert len(state._changed.get(1, {})) <= 1 and not state._awaited
    assert not state.own.sessions.by_id and not state.own.messages.tally[0]


def test_messages_of_many_properties_that_are_written_anew_have_more_chains(
    monkeypatch: pytest.MonkeyPatch, topic: TopicBench
) -> None:
    for number in range(20):
        topic.subscribe(f"s{number}", rules=[sql("p0 = 0", "SET mine = 1")])
    chains = list[int]()
    chain_of = fan_out.chain_of
    monkeypatch.setattr(fan_out, "chain_of", lambda *parts: chains.append(len(run := chain_of(*parts))) or run)
    properties: dict[str, object] = {f"p{number}": 0 for number in range(2_500)}
    topic.enqueue(message("one", properties=properties), message("two", properties=properties))
    assert {len(topic.of(name).peek()) for name in topic.subscriptions} == {2}
    assert len(chains) > 2 and topic.fragment.counts().active == 0

"""fan_out.py: what of a topic's messages is copied when, and what a record that nobody can read holds up.

What copies there are, and how they survive crashes, is in test_topic_fragment.py and test_topic_histories.py; disks
that refuse are in test_topic_failures.py.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any

import pytest

from hubweir.amqp.messaging.message import decode_message
from hubweir.env import Lane
from hubweir.errors import STORE_OFFLINE
from hubweir.kernels import encode_message
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.namespace.subscription_rule import CorrelationFilterDescription, SubscriptionRuleDescription
from hubweir.queue.forward_origin import origin
from hubweir.queue.fragment import Times
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.message_reads import MessageReads
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import LOG_ID, bodies, message, run_of
from hubweir.queue.traced_step import Step
from hubweir.testing.memory_faults import Fault
from hubweir.topic import fan_out
from hubweir.topic.fan_out import FanOut
from hubweir.topic.rule import Rule, read_rule
from hubweir.topic.sql_values import TimeSpan, value_of
from hubweir.topic.tests.topic_bench import ALL, TopicBench, sql
from hubweir.topic.topic_fragment import TopicFragment


class Told:
    """A trace: of which records, and how it ended."""

    def __init__(self, records: bytes) -> None:
        self.records = records
        self.ends: list[str] = []

    def ended(self, refused: str = "") -> None:
        self.ends.append(refused)


class Notes:
    """A tracer for which everything is sampled."""

    def __init__(self) -> None:
        self.traces: list[Told] = []

    def begins(self, step: Step, entity: str, run: bytes | bytearray | memoryview) -> Told:
        assert (step, entity) == (Step.COPY, "news")
        self.traces.append(Told(bytes(run)))
        return self.traces[-1]


@pytest.fixture
def topic() -> TopicBench:
    return TopicBench()


def copies_of(topic: TopicBench, name: str) -> list[str]:
    return bodies(topic.of(name).peek())


def held_back(topic: TopicBench, monkeypatch: pytest.MonkeyPatch, *sends: str) -> None:
    """Have these in the topic, on disk alone, and no copies made yet."""
    with monkeypatch.context() as patch:
        patch.setattr(TopicFragment, "begin", lambda self: None)
        topic.restart()
        for body in sends:
            topic.send(body)
        topic.restart()


def test_a_damaged_message_stays_with_the_topic_and_holds_up_no_other(
    topic: TopicBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.subscribe("a", rules=[sql("1 = 1", "SET seen = 1")])  # a rule that changes a copy has to read the message
    held_back(topic, monkeypatch, "bad" * 1_500, "good" * 1_500, "better")
    path = next(
        path for path in topic.env.files.paths() if path.endswith(".log") and b"bad" in topic.env.files.bytes_of(path)
    )
    data = topic.env.files.bytes_of(path)
    data[data.index(b"badbad")] ^= 1
    topic.topic.begin()
    topic.run_for(5_000)
    assert copies_of(topic, "a") == ["good" * 1_500, "better"]
    assert topic.fragment.counts().active == 1, "it is there, and nobody gets it"
    topic.send("next")
    topic.run_for(2_000)
    assert copies_of(topic, "a")[-1] == "next"


def test_nothing_is_copied_before_all_subscriptions_are_there_nor_behind_the_end(
    topic: TopicBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.subscribe("a")
    held_back(topic, monkeypatch, "early")
    topic.run_for(2_000)
    assert copies_of(topic, "a") == []
    topic.topic.begin()
    topic.run_for(2_000)
    assert copies_of(topic, "a") == ["early"]
    topic.topic._fan_out.end()
    topic.send("late")
    topic.run_for(2_000)
    assert copies_of(topic, "a") == ["early"] and topic.fragment.counts().active == 1


@pytest.mark.parametrize(
    ("rule", "chains"), [(ALL, [4, 2]), (sql("seen IS NULL", "SET seen = 1"), [2, 2, 2])], ids=["plain", "asked"]
)
def test_a_chain_is_shorter_where_rules_look_at_every_message(
    topic: TopicBench, monkeypatch: pytest.MonkeyPatch, rule: Rule, chains: list[int]
) -> None:
    topic.subscribe("a", rules=[rule])
    held_back(topic, monkeypatch, *map(str, range(6)))
    monkeypatch.setattr(fan_out, "EVALUATIONS", 4)  # a turn
    copied, copy = list[int](), FanOut._copy

    def counted(self: FanOut, counts: array[int], chain: Any, times: Times, *trace: Any) -> None:
        copied.append(len(counts))
        copy(self, counts, chain, times, *trace)

    monkeypatch.setattr(FanOut, "_copy", counted)
    topic.topic.begin()
    topic.run_for(2_000)
    assert copies_of(topic, "a") == list(map(str, range(6))) and copied == chains


def test_rules_see_when_a_message_expires_and_what_number_it_had_before_it_was_forwarded(topic: TopicBench) -> None:
    ends = sql("sys.ExpiresAtUtc = sys.EnqueuedTimeUtc + sys.TimeToLive", name="ends")
    topic.subscribe("ends", rules=[ends])
    topic.subscribe("never ends", rules=[sql("sys.ExpiresAtUtc IS NULL")])
    topic.subscribe("forwarded", rules=[sql("sys.EnqueuedSequenceNumber = 7 AND sys.SequenceNumber = 3")])
    topic.subscribe("sent here", rules=[sql("sys.EnqueuedSequenceNumber IS NULL")])
    topic.subscribe("dead there", rules=[sql("sys.DeadLetterSource = 'there'")])
    says = {"x-opt-deadletter-source": "there"}
    topic.send("brief", ttl_ms=60_000, annotations=says)
    topic.send("lasting")
    answers: list[Any] = []
    firsts, ends_ms, run = array("q", [origin(7, 1)]), array("q", [-1]), run_of(message("moved", annotations=says))
    topic.fragment.store_transfer(b"source", 1, 1, run, firsts, ends_ms, topic.times(), answers.append)
    topic.run_for(500)
    assert answers == [True]
    assert (copies_of(topic, "ends"), copies_of(topic, "never ends")) == (["brief"], ["lasting", "moved"])
    assert (copies_of(topic, "forwarded"), copies_of(topic, "sent here")) == (["moved"], ["brief", "lasting"])
    assert copies_of(topic, "dead there") == ["moved"], "what its sender says of that is nothing"


@pytest.mark.parametrize("message_id", [None, "its own"])
def test_rules_see_the_id_that_receivers_of_all_copies_see(message_id: str | None) -> None:
    topic = TopicBench(number=3)  # of which fragment a message is stands in its number, and in the id it is given
    says = sql("sys.MessageId LIKE '%' AND EXISTS(sys.MessageId)", "SET seen = sys.MessageId")
    topic.subscribe("a", rules=[says, sql("sys.MessageId IS NULL", name="without")])
    topic.subscribe("b")
    later_ms = topic.now_ms() + 1_000  # scheduled: it has another number when rules see it
    topic.enqueue(message("first", message_id="other"), message("one", message_id=message_id, scheduled_ms=later_ms))
    topic.run_for(2_000)
    [(_, _), (seen, a)], [(_, _), (_, b)] = ids_of(topic, "a"), ids_of(topic, "b")
    assert seen == a == b and (message_id is None or a == message_id)
    same = SubscriptionRuleDescription("same", CorrelationFilterDescription(message_id=str(a)))
    topic.subscribe("c", rules=[read_rule(same)])
    topic.send("two", message_id=a)
    assert copies_of(topic, "c") == ["two"]


def ids_of(topic: TopicBench, name: str) -> list[tuple[object, object]]:
    """Of each copy of a subscription the id that a rule saw, and the one that receivers see."""
    peek = partial(topic.of(name).fragment.peek, SubQueue.MAIN, 1, max_count=9, max_bytes=1 << 20)
    answer = topic.answer(lambda done: peek(on_done=done), 200)
    found: list[tuple[object, object]] = []
    for row in range(len(answer.rows) // MESSAGE_WIDTH):
        told = decode_message(encode_message(answer.run, answer.rows, row, LOG_ID[:16].encode()))
        assert told.properties is not None
        found.append(((told.application_properties or {}).get("seen"), told.properties.message_id))
    return found


@pytest.mark.parametrize(
    ("sent_ms", "of_topic_ms", "expected"),
    [(None, -1, None), (5_000, -1, 5_000), (None, 60_000, 60_000), (5_000, 60_000, 5_000), (90_000, 60_000, 60_000)],
)
def test_rules_see_the_time_to_live_that_the_topic_left_a_message(
    sent_ms: int | None, of_topic_ms: int, expected: int | None
) -> None:
    topic = TopicBench(FragmentSettings(default_ttl_ms=of_topic_ms))
    topic.subscribe("a", rules=[sql("1 = 1", "SET lives = sys.TimeToLive")])
    topic.send("one", ttl_ms=sent_ms)
    [got] = topic.of("a").peek()
    assert got.properties is not None
    assert value_of(got.properties["lives"]) == (None if expected is None else TimeSpan(expected * 10_000))
    assert got.ttl_ms == (-1 if expected is None else expected)


CHANGING = sql("1 = 1", "SET seen = 1")


@pytest.mark.parametrize("rule", [ALL, CHANGING], ids=["plain", "asked"])
def test_each_chain_of_copies_is_one_step_of_its_messages(monkeypatch: pytest.MonkeyPatch, rule: Rule) -> None:
    notes = Notes()
    topic = TopicBench(tracer=notes)
    topic.subscribe("a", rules=[rule])
    topic.subscribe("b", rules=[ALL])
    sent = [f"body-{number}" for number in range(6)]
    held_back(topic, monkeypatch, *sent)
    monkeypatch.setattr(fan_out, "EVALUATIONS", 4)  # a turn, so that there are several chains
    topic.topic.begin()
    topic.run_for(2_000)
    assert copies_of(topic, "a") == copies_of(topic, "b") == sent
    assert len(notes.traces) > 1 and all(each.ends == [""] for each in notes.traces)
    for body in sent:
        assert [body.encode() in each.records for each in notes.traces].count(True) == 1


def test_a_chain_that_is_full_is_a_step_of_the_messages_that_it_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others come in the next chain; a message whose copies need several chains is in each of them."""
    notes = Notes()
    topic = TopicBench(tracer=notes)
    for name in ("a", "b", "c"):
        topic.subscribe(name, rules=[CHANGING])
    sent = [f"body-{number}" * 100 for number in range(4)]
    held_back(topic, monkeypatch, *sent)
    monkeypatch.setattr(fan_out, "CHANGED_BYTES", 1_000)  # two copies
    topic.topic.begin()
    topic.run_for(5_000)
    assert copies_of(topic, "c") == sent
    held = [[number for number, body in enumerate(sent) if body.encode() in each.records] for each in notes.traces]
    assert held == [[0], [0], [1], [1], [2], [2], [3], [3]] and all(each.ends == [""] for each in notes.traces)


def test_what_cannot_be_read_for_a_trace_is_copied_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    topic = TopicBench(tracer=notes)
    topic.subscribe("a")
    held_back(topic, monkeypatch, "waits")
    plan = topic.env.files.plan(Fault.EIO, forever=True, call="read")
    topic.topic.begin()
    topic.run_for(2_000)
    topic.env.files.heal()
    assert plan.fired and notes.traces == []
    assert topic.fragment.counts().active == 0 and topic.fragment_of("a").counts().active == 1


def test_a_subscription_that_ends_while_messages_are_read_for_a_trace_gets_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()
    topic = TopicBench(tracer=notes)
    for name in ("goes", "stays"):
        topic.subscribe(name)
    held_back(topic, monkeypatch, "waits")
    topic.env.stall(Lane.READS)
    topic.topic.begin()
    topic.run_for(500)
    assert topic.env.stalled_calls(Lane.READS) == 1 and notes.traces == []
    topic.unsubscribe("goes")
    topic.env.go_on(Lane.READS)
    topic.run_for(1_000)
    assert copies_of(topic, "stays") == ["waits"] and [each.ends for each in notes.traces] == [[""]]


def test_without_a_tracer_no_message_is_read_that_every_subscription_gets(
    topic: TopicBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.subscribe("a")

    def read(*arguments: Any) -> None:
        raise AssertionError("it was read")

    with monkeypatch.context() as patch:
        patch.setattr(MessageReads, "begin", read)
        topic.send("one")
        topic.run_for(500)
    assert copies_of(topic, "a") == ["one"]


def test_a_chain_that_the_log_refuses_is_a_step_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    topic = TopicBench(tracer=notes)
    topic.subscribe("a")
    held_back(topic, monkeypatch, "waits")
    topic.env.files.plan(Fault.ENOSPC, forever=True, call="write")
    topic.topic.begin()
    topic.run_for(1_500)
    topic.env.files.heal()
    topic.run_for(5_000)
    assert copies_of(topic, "a") == ["waits"]
    *failed, last = notes.traces
    assert failed and {end for each in failed for end in each.ends} == {STORE_OFFLINE.symbol} and last.ends == [""]

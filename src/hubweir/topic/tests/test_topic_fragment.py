"""A topic on its log: what each subscription gets, once and in order, through crashes, failures and upkeep."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.errors import ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_ENQUEUE_NUMBER
from hubweir.queue.fragment import NumberRange
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import PEEK_LOCK, QueueBench, bodies, message, run_of
from hubweir.queue.tests.forward_bench import ForwardBench
from hubweir.testing.memory_faults import Fault
from hubweir.topic.tests.topic_bench import ALL, TopicBench, sql


@pytest.fixture
def topic() -> TopicBench:
    return TopicBench()


def of_all(topic: TopicBench, name: str) -> list[str]:
    return bodies(topic.of(name).peek())


def test_each_subscription_has_numbers_locks_and_delivery_counts_of_its_own(topic: TopicBench) -> None:
    topic.send("before")
    topic.subscribe("a")
    topic.send("one")
    topic.subscribe("b")
    topic.send("two")
    a, b = topic.of("a"), topic.of("b")
    assert [(each.number, each.body) for each in a.peek()] == [(1, b"one"), (2, b"two")]
    assert [(each.number, each.body) for each in b.peek()] == [(1, b"two")]
    [one, two] = a.receive()
    a.settle([two], SettleOutcome.ABANDON)
    [again] = a.receive()
    assert (again.number, again.deliveries) == (2, 1)
    [other] = b.receive()
    assert (other.number, other.deliveries) == (1, 0)
    assert b.settle([one, other]) == [1, 0]
    a.complete([one, again])
    assert a.peek() == b.peek() == []


def test_a_message_that_no_rule_lets_through_is_accepted_and_gone(topic: TopicBench) -> None:
    assert topic.send("nobody") == [1]
    topic.subscribe("none", rules=())
    topic.subscribe("some", rules=[sql("color = 'red'")])
    assert topic.send("nobody either") == [2]
    assert topic.peek() == [] and topic.of("none").peek() == [] and topic.of("some").peek() == []
    assert topic.fragment.counts().size_bytes == 0
    topic.send("red", properties={"color": "red"})
    assert of_all(topic, "some") == ["red"]
    assert topic.fragment.counts().size_bytes == topic.fragment_of("some").counts().size_bytes > 0


def test_a_copy_tells_its_number_in_the_topic_and_the_same_id_everywhere(topic: TopicBench) -> None:
    topic.send("before")
    topic.subscribe("a")
    topic.subscribe("b", rules=[sql("1 = 1", "SET color = 'red'")])
    topic.send("one")
    for name in "ab":
        receiver, answers = topic.of(name).receiver(), list[Any]()
        topic.fragment_of(name).receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
        topic.run_for(50)
        assert list(answers[0].rows[Q_ENQUEUE_NUMBER::MESSAGE_WIDTH]) == [2]
    assert topic.of("a").peek()[0].id_number == topic.of("b").peek()[0].id_number == 2


def test_rules_without_an_action_make_one_copy_and_each_with_one_a_copy(topic: TopicBench) -> None:
    actions = [sql("1 = 1", f"SET tag = {number}", name=f"act {number}") for number in (1, 2)]
    plain = [sql("quantity > 10", name="many"), sql("color = 'blue'", name="blue"), ALL]
    topic.subscribe("a", rules=[*actions, *plain])
    topic.send("one", properties={"quantity": 11, "color": "blue"})
    got = topic.of("a").peek()
    assert [(each.properties or {}).get("RuleName") for each in got] == ["act 1", "act 2", None]
    assert [(each.properties or {}).get("tag") for each in got] == [1, 2, None]
    assert [each.number for each in got] == [1, 2, 3] and {each.body for each in got} == {b"one"}


def test_copies_stand_in_the_order_of_the_sends_whatever_changed_them(topic: TopicBench) -> None:
    topic.subscribe("a", rules=[sql("odd = 1", "SET seen = 'x'"), sql("odd = 0", name="even")])
    texts = [f"{number}" for number in range(9)]
    topic.enqueue(*(message(text, properties={"odd": int(text) % 2}) for text in texts))
    assert of_all(topic, "a") == texts
    topic.restart()
    assert of_all(topic, "a") == texts


def test_a_rule_that_cannot_be_asked_makes_a_dead_letter_where_the_subscription_says_so(topic: TopicBench) -> None:
    rules = [sql("sys.nothing = 1", name="bad"), sql("color = 'red'", name="red")]
    topic.subscribe("keeps", rules=rules)
    topic.subscribe("drops", rules=rules, keeps_failed=False)
    topic.send("blue", properties={"color": "blue"})
    topic.send("red", properties={"color": "red"})
    for _ in range(2):
        keeps = topic.of("keeps")
        assert of_all(topic, "drops") == of_all(topic, "keeps") == ["red"]
        dead = keeps.peek(sub_queue=SubQueue.DEAD_LETTERS)
        assert bodies(dead) == ["blue", "red"]
        assert {(each.properties or {}).get("DeadLetterReason") for each in dead} == {"FilterException"}
        assert topic.of("drops").peek(sub_queue=SubQueue.DEAD_LETTERS) == []
        topic.restart()


def test_a_message_without_a_session_id_is_a_dead_letter_where_sessions_are_required(topic: TopicBench) -> None:
    topic.subscribe("sessions", requires_session=True)
    topic.subscribe("changed", rules=[sql("1 = 1", "SET sys.SessionId = 'mine'")], requires_session=True)
    topic.send("without")
    topic.send("of one", session="one")
    topic.send("of none", session="")
    for _ in range(2):
        dead = topic.of("sessions").peek(sub_queue=SubQueue.DEAD_LETTERS)
        assert [(each.body, (each.properties or {})["DeadLetterReason"]) for each in dead] == [
            (b"without", "Session ID is null.")
        ]
        assert bodies(topic.of("sessions").peek(session="one")) == ["of one"]
        assert bodies(topic.of("sessions").peek(session="")) == ["of none"]
        assert bodies(topic.of("changed").peek(session="mine")) == ["without", "of one", "of none"]
        topic.restart()


def accepted(topic: TopicBench, name: str, session: str) -> Any:
    """A receiver that holds this session."""
    bench, answers = topic.of(name), list[Any]()
    bench.fragment.accept_session(
        session, PEEK_LOCK, topic.times(), wait_ms=0, on_done=answers.append, on_lost=lambda *_: None
    )
    topic.run_for(20)
    return answers[0]


def test_sessions_are_first_in_first_out_in_each_subscription(topic: TopicBench) -> None:
    topic.subscribe("a", requires_session=True)
    for number in range(6):
        topic.send(f"{number}", session="even" if number % 2 == 0 else "odd")
    receiver = accepted(topic, "a", "odd")
    got = topic.of("a").receive(receiver)
    assert bodies(got) == ["1", "3", "5"]
    topic.of("a").settle(got[:1], SettleOutcome.ABANDON)
    assert bodies(topic.of("a").receive(receiver)) == ["1"]
    topic.restart()
    assert bodies(topic.of("a").receive(accepted(topic, "a", "even"))) == ["0", "2", "4"]


def test_a_copy_expires_by_the_least_of_three_times_to_live() -> None:
    topic = TopicBench(FragmentSettings(default_ttl_ms=60_000))
    topic.subscribe("short", default_ttl_ms=10_000, dead_letters_on_expiry=True)
    topic.subscribe("long", default_ttl_ms=100_000)
    topic.subscribe("changed", rules=[sql("1 = 1", "SET a = 1")], default_ttl_ms=100_000)
    topic.send("mine", ttl_ms=5_000)
    topic.send("theirs")
    spans = {name: [each.ttl_ms for each in topic.of(name).peek()] for name in ("short", "long", "changed")}
    assert spans == {"short": [5_000, 10_000], "long": [5_000, 60_000], "changed": [5_000, 60_000]}
    topic.run_for(11_000)
    assert bodies(topic.of("short").peek(sub_queue=SubQueue.DEAD_LETTERS)) == ["mine", "theirs"]
    assert of_all(topic, "long") == of_all(topic, "changed") == ["theirs"]


def test_the_copies_of_what_was_forwarded_expire_when_it_does(topic: TopicBench) -> None:
    topic.subscribe("plain")
    topic.subscribe("changed", rules=[sql("1 = 1", "SET a = 1")])
    source = QueueBench(FragmentSettings(default_ttl_ms=60_000))
    source.send("tea")
    source.run_for(50_000)
    (sent,) = source.peek()
    topic.run_for(source.now_ms() - topic.now_ms())
    ForwardBench(source, topic).forward()
    topic.run_for(500)
    for name in ("plain", "changed"):
        (copy,) = topic.of(name).peek()
        assert copy.expires_ms == sent.expires_ms, name
    topic.restart()
    assert [each.expires_ms for each in topic.of("changed").peek()] == [sent.expires_ms]


def test_scheduled_messages_wait_in_the_topic_until_their_time(topic: TopicBench) -> None:
    topic.subscribe("a")
    [number, cancelled] = topic.send("later", "never", scheduled_ms=topic.now_ms() + 5_000)
    assert topic.answer(lambda on_done: topic.fragment.cancel_scheduled(array("q", [cancelled]), on_done)) is None
    assert topic.fragment.counts().scheduled == 1 and topic.of("a").peek() == []
    topic.run_for(5_100)
    assert of_all(topic, "a") == ["later"] and topic.fragment.counts().scheduled == 0
    assert number == 1


def test_duplicates_are_dropped_before_they_are_copied() -> None:
    topic = TopicBench(FragmentSettings(duplicate_window_ms=20_000))
    topic.subscribe("a")
    topic.send("first", message_id="x")
    topic.send("second", message_id="x")
    assert of_all(topic, "a") == ["first"]


def test_what_subscriptions_hold_counts_for_the_size_of_the_topic() -> None:
    topic = TopicBench(FragmentSettings(max_size_bytes=3_000))
    topic.subscribe("a")
    topic.send("x" * 1_000)
    topic.send("y" * 1_000)
    with pytest.raises(ServiceError) as refused:
        topic.send("z" * 1_000)
    assert refused.value.condition.symbol == "amqp:resource-limit-exceeded"
    topic.of("a").complete(topic.of("a").receive())
    topic.send("z" * 1_000)


def test_more_messages_than_fit_into_one_chain_are_all_copied(topic: TopicBench) -> None:
    topic.subscribe("a")
    topic.subscribe("b", rules=[sql("1 = 1", "SET a = 1")])
    texts = [f"{number}" for number in range(1_500)]
    topic.enqueue(*map(message, texts), wait_ms=500)
    assert of_all(topic, "a") == texts[:1_000] and topic.fragment_of("a").counts().active == 1_500
    assert of_all(topic, "b") == texts[:1_000] and topic.fragment_of("b").counts().active == 1_500
    assert topic.fragment.counts().active == 0


def test_rules_hold_from_the_next_message_on(topic: TopicBench) -> None:
    topic.subscribe("a")
    topic.send("one")
    topic.topic.remove_rule("a", "$default")
    topic.send("two")
    topic.topic.put_rule("a", sql("color = 'red'"))
    topic.send("blue", properties={"color": "blue"})
    topic.send("red", properties={"color": "red"})
    topic.topic.put_rule("a", sql("color = 'blue'"))
    topic.send("blue again", properties={"color": "blue"})
    assert of_all(topic, "a") == ["one", "red", "blue again"]


def test_before_its_subscriptions_are_there_a_topic_copies_nothing(topic: TopicBench) -> None:
    topic.subscribe("a")
    topic.topic._fan_out.end()  # as before `begin`
    topic.send("waits")
    assert bodies(topic.peek()) == ["waits"] and topic.of("a").peek() == []
    topic.topic.begin()
    topic.run_for(50)
    assert topic.peek() == [] and of_all(topic, "a") == ["waits"]


def test_a_subscription_that_is_removed_takes_its_messages_along(topic: TopicBench) -> None:
    topic.subscribe("a")
    topic.subscribe("b")
    topic.send("one")
    topic.unsubscribe("a")
    topic.send("two")
    topic.restart()
    assert of_all(topic, "b") == ["one", "two"]
    topic.subscribe("a")
    topic.send("three")
    assert [(each.number, each.body) for each in topic.of("a").peek()] == [(1, b"three")]


def test_the_catalog_says_at_a_start_which_subscriptions_there_are(topic: TopicBench) -> None:
    topic.subscribe("goes")
    topic.subscribe("stays")
    topic.send("one")
    stays = topic.subscriptions["stays"]
    topic.subscriptions = {"comes": stays, "stays": stays}
    topic.restart()
    topic.send("two")
    assert (of_all(topic, "comes"), of_all(topic, "stays")) == (["two"], ["one", "two"])
    topic.restart()
    assert (of_all(topic, "comes"), of_all(topic, "stays")) == (["two"], ["one", "two"])
    topic.subscriptions["goes"] = stays  # another of its name
    topic.restart()
    assert of_all(topic, "goes") == []


def test_what_receivers_did_is_as_it_was_after_a_start_from_a_snapshot(topic: TopicBench) -> None:
    topic.topic.upkeep.snapshot_records = 1
    topic.subscribe("a", requires_session=False)
    topic.subscribe("sessions", requires_session=True)
    topic.subscribe("acts", rules=[sql("1 = 1", "SET a = 1"), ALL])
    topic.send(*map(str, range(20)), session="s")
    topic.send("later", scheduled_ms=topic.now_ms() + 60_000)
    got = topic.of("a").receive(max_count=10)
    topic.of("a").complete(got[:3])
    topic.of("a").settle(got[3:5], SettleOutcome.DEFER)
    topic.of("a").settle(got[5:7], SettleOutcome.DEAD_LETTER, details=SettleDetails(reason="r"))
    topic.of("a").settle(got[7:9], SettleOutcome.ABANDON)

    def seen() -> list[object]:
        found: list[object] = [topic.fragment.counts()]
        for name in topic.subscriptions:
            bench = topic.of(name)
            for sub_queue in SubQueue:
                found += [(each.number, each.body, each.state) for each in bench.peek(sub_queue=sub_queue)]
            found.append(bench.fragment.counts())
        return found

    before = seen()
    topic.maintained()
    assert topic.topic.upkeep.snapshot_index == topic.log.bounds.next_index
    topic.restart()
    assert topic.topic.upkeep.snapshot_index > 20
    assert seen() == before
    receiver = accepted(topic, "sessions", "s")
    assert bodies(topic.of("sessions").receive(receiver)) == [str(number) for number in range(20)]
    topic.run_for(61_000)
    assert of_all(topic, "a")[-1] == "later"


def test_a_message_that_stays_in_one_subscription_does_not_keep_the_log(topic: TopicBench) -> None:
    topic.subscribe("slow")
    topic.subscribe("quick")
    topic.send("straggler" + "s" * 500)
    topic.of("quick").complete(topic.of("quick").receive())
    topic.topic.upkeep.snapshot_records, topic.topic.upkeep.slack_bytes = 10, 100_000
    topic.subscriptions["slow"].rules = ()
    topic.topic.remove_rule("slow", "$Default")
    for _ in range(8):
        for _ in range(20):
            topic.send("x" * 2_000)
            topic.of("quick").complete(topic.of("quick").receive())
        topic.maintained()
    bounds = topic.log.bounds
    assert bounds.first_index > 100 and bounds.next_offset - bounds.first_offset < 4 * 64 * 1024
    for _ in range(2):
        [straggler] = topic.of("slow").peek()
        assert straggler.body.startswith(b"straggler") and straggler.number == 1
        topic.restart()


def test_a_copy_is_made_once_when_the_log_refuses_it_first(topic: TopicBench) -> None:
    topic.subscribe("a")
    topic.subscribe("b")
    answers = list[Any]()
    topic.env.files.plan(Fault.SYNC_EIO, 2)  # the send is synced, its fan-out is not

    topic.fragment.enqueue(run_of(message("one")), 1, topic.times(), answers.append)
    topic.run_for(5_000)
    assert isinstance(answers[0], NumberRange)
    for _ in range(2):
        assert of_all(topic, "a") == of_all(topic, "b") == ["one"]
        assert topic.peek() == []
        topic.restart()

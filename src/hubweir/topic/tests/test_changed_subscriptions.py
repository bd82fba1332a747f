"""Subscriptions of a topic that are added and changed: what they have then, and what the log says of it."""

from __future__ import annotations

import pytest

from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import bodies
from hubweir.topic.tests.topic_bench import ALL, TopicBench, sql


@pytest.fixture
def topic() -> TopicBench:
    return TopicBench()


def test_a_subscription_that_is_changed_has_the_rules_that_are_said_and_no_others(topic: TopicBench) -> None:
    failing = sql("1 / zero = 1", name="failing")
    topic.subscribe("a", rules=[ALL, sql("color = 'red'", "SET a = 1", name="red")], keeps_failed=False)
    topic.topic.change("a", keeps_failed=True, rules=[sql("color = 'blue'", name="blue"), failing])
    for color in ("red", "blue"):
        topic.send(color, properties={"color": color, "zero": 0})
    assert bodies(topic.of("a").peek()) == ["blue"]
    assert bodies(topic.of("a").peek(sub_queue=SubQueue.DEAD_LETTERS)) == ["red", "blue"]
    topic.topic.change("a", keeps_failed=False, rules=[failing])
    topic.send("lost", properties={"zero": 0})
    assert bodies(topic.of("a").peek()) == ["blue"]
    assert bodies(topic.of("a").peek(sub_queue=SubQueue.DEAD_LETTERS)) == ["red", "blue"]


def test_a_subscription_that_is_added_twice_at_once_is_one_and_both_are_told_when_it_is_there(
    topic: TopicBench,
) -> None:
    answers: list[object] = []
    appended = topic.log.bounds.next_index
    for _ in range(2):
        topic.topic.add_subscription("a", FragmentSettings(), topic.times(), answers.append)
    assert answers == []
    topic.run_for(500)
    assert answers == [None, None]
    once = topic.log.bounds.next_index - appended
    topic.subscribe("b")
    assert topic.log.bounds.next_index - appended == 2 * once, "one is said in the log as any other"
    topic.topic.add_subscription("a", FragmentSettings(), topic.times(), answers.append)
    assert answers == [None] * 3

"""fan_out.py: what of a topic's messages is copied when, and what a record that nobody can read holds up.

What copies there are, and how they survive crashes, is in test_topic_fragment.py and test_topic_histories.py; disks
that refuse are in test_topic_failures.py.
"""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.queue.fragment import Times
from hubweir.queue.tests.conftest import bodies
from hubweir.topic import fan_out
from hubweir.topic.fan_out import FanOut
from hubweir.topic.rule import Rule
from hubweir.topic.tests.topic_bench import ALL, TopicBench, sql
from hubweir.topic.topic_fragment import TopicFragment


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

    def counted(self: FanOut, counts: array[int], chain: Any, times: Times) -> None:
        copied.append(len(counts))
        copy(self, counts, chain, times)

    monkeypatch.setattr(FanOut, "_copy", counted)
    topic.topic.begin()
    topic.run_for(2_000)
    assert copies_of(topic, "a") == list(map(str, range(6))) and copied == chains

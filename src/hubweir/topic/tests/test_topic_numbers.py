"""A topic that lies in several logs: what one of them numbers says which one it is."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.errors import ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_ENQUEUE_NUMBER
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.topic.tests.topic_bench import TopicBench


def test_a_topic_s_fragment_names_itself_in_all_numbers_and_locks_of_it_and_of_its_subscriptions() -> None:
    topic = TopicBench(number=5)
    base = 5 << 48
    topic.subscribe("a")
    assert topic.send("one", "two") == [base + 1, base + 2]
    a = topic.of("a")
    [one, two] = a.receive()
    assert (one.number, two.number, one.id_number) == (base + 1, base + 2, base + 1)
    assert [each.token[:2] for each in (one, two)] == [b"\0\5"] * 2
    assert a.settle([one, two], SettleOutcome.DEFER) == [0, 0]
    topic.restart()
    a = topic.of("a")
    [again] = a.deferred(base + 2)
    assert again.token[:2] == b"\0\5" and again.token != two.token
    with pytest.raises(ServiceError, match="no deferred message of sequence number 1 "):
        a.deferred(1)
    answers: list[Any] = []
    a.fragment.peek(SubQueue.MAIN, 0, max_count=1, max_bytes=1 << 20, on_done=answers.append, session_id=None)
    topic.run_for(200)
    assert list(answers[0].rows[Q_ENQUEUE_NUMBER::MESSAGE_WIDTH]) == [base + 1]

"""Receiving and settling against a running service."""

import asyncio
from typing import Any

import pytest

from hubweir.client.message_link import NotSettled
from hubweir.client.message_run import MessageRun
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.client.tests.queue_scenarios import WAIT_S, NewQueue, Play, take, until
from hubweir.errors import (
    MESSAGE_LOCK_LOST,
    MESSAGE_NOT_FOUND,
    ServiceError,
)
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

DEAD = QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS)
DELETING = QueueReceiverOptions(mode=ReceiveMode.RECEIVE_AND_DELETE)


def test_each_outcome_does_its_own(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(*(b"%d" % number for number in range(5)))
        receiver, dead = client.receiver(queue), client.receiver(queue, DEAD)
        run = await take(receiver, 5)
        await receiver.abandon(run[0], {"tries": 1})
        await receiver.release(run[1])
        await receiver.defer(run[2])
        await receiver.dead_letter(run[3], "bad", "very bad", {"seen": True})
        await receiver.complete(run[4])
        again = await take(receiver, 2)
        assert [(each.body, each.delivery_count, each.properties) for each in again] == [
            (b"0", 1, {"tries": 1}),
            (b"1", 0, {}),
        ]
        (deferred,) = await receiver.receive_deferred(run[2].sequence_number)
        assert (deferred.body, deferred.state) == (b"2", "deferred")
        await receiver.complete(deferred)
        with pytest.raises(ServiceError) as gone:
            await receiver.receive_deferred(run[2].sequence_number)
        assert gone.value.condition is MESSAGE_NOT_FOUND
        (letter,) = await take(dead, 1)
        assert (letter.body, letter.dead_letter_reason, letter.dead_letter_description) == (b"3", "bad", "very bad")
        assert letter.properties["seen"] is True
        await dead.complete(letter)
        await receiver.complete(again)
        assert not await receiver.peek(10) and not await dead.peek(10)

    play(scenario)


def test_many_messages_are_settled_with_few_dispositions(
    play: Play, new_queue: NewQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        assert await client.sender(queue).send_all(b"%d" % number for number in range(2_000)) == 2_000
        receiver = client.receiver(queue)
        run = await take(receiver, 2_000)
        assert run.bodies() == [b"%d" % number for number in range(2_000)]
        told: list[tuple[int, int]] = []
        link = run.link._link  # type: ignore[union-attr]
        settle = link.settle

        def counted(first: int, last: int, outcome: Any, *, settled: bool = True) -> None:
            told.append((first, last))
            settle(first, last, outcome, settled=settled)

        monkeypatch.setattr(link, "settle", counted)
        kept = [run[place] for place in (700, 1_500)]
        await receiver.complete([message for message in run if message.place not in (700, 1_500)])
        assert [last - first + 1 for first, last in told] == [700, 799, 499]
        left = await receiver.peek(10)
        assert left.sequence_numbers() == [message.sequence_number for message in kept]
        await receiver.complete(kept)

    play(scenario)


def test_a_lock_that_is_lost_is_told_and_the_others_are_settled(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(b"a", b"b", b"c")
        receiver = client.receiver(queue)
        run = await take(receiver, 3)
        await receiver.complete(run[1])
        with pytest.raises(NotSettled) as lost:
            await receiver.complete(run)
        assert lost.value.condition is MESSAGE_LOCK_LOST
        assert not await receiver.peek(10), "the two that were locked are done"

    play(scenario)


def test_the_service_tells_which_locks_have_ended(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(b"a", b"b", b"c")
        receiver, other = client.receiver(queue), client.receiver(queue)
        run = await take(receiver, 3)
        link = run.link
        assert link is not None
        await other.receive(max_wait_s=0.01)  # attaches: a living link of its own
        by_token = MessageRun(run.data, run.rows)  # as of an answer: settled by its token
        await other.complete(by_token[1])
        with pytest.raises(NotSettled) as lost:
            await receiver.complete(run)
        assert lost.value.condition is MESSAGE_LOCK_LOST
        assert lost.value.delivery_ids == [run.delivery_ids()[1]]
        assert "1 of 3 messages" in str(lost.value)
        assert not await other.peek(10)

    play(scenario)


def test_messages_of_a_link_that_is_gone_are_settled_and_renewed_by_their_tokens(
    play: Play, new_queue: NewQueue
) -> None:
    queue = new_queue(lock_duration_ms=30_000)

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(b"a", b"b")
        receiver, dead = client.receiver(queue), client.receiver(queue, DEAD)
        run = await take(receiver, 2)
        before = run[0].locked_until_ms
        assert before is not None
        await receiver.close()
        ends = await receiver.renew(run)
        assert len(ends) == 2 and all(end >= before for end in ends)
        await receiver.complete(run[0])
        await receiver.dead_letter(run[1], "late")
        (letter,) = await take(dead, 1)
        assert (letter.body, letter.dead_letter_reason) == (b"b", "late")
        with pytest.raises(ServiceError) as lost:
            await receiver.renew(run[0])
        assert lost.value.condition is MESSAGE_LOCK_LOST
        with pytest.raises(ServiceError, match="its lock ends by itself"):
            await receiver.release(run[0])

    play(scenario)


def test_nothing_is_locked_that_nobody_asked_for(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        receiver, other = client.receiver(queue), client.receiver(queue)
        assert not await receiver.receive(100, max_wait_s=0.05)
        await client.sender(queue).send(*(b"%d" % number for number in range(10)))
        assert len(await take(receiver, 3)) == 3
        waiting = asyncio.create_task(receiver.receive(100, max_wait_s=WAIT_S))
        rest = await waiting
        await receiver.release(rest)
        assert len(await take(other, 7)) == 7
        given_up = asyncio.create_task(receiver.receive(100, max_wait_s=WAIT_S))
        link = receiver._link
        assert link is not None
        await until(lambda: link._link.credit > 0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await until(lambda: not link._is_draining)
        await client.sender(queue).send(b"late")
        (late,) = await take(other, 1)
        assert late.body == b"late"
        await client.sender(queue).send(b"later")
        assert (await take(receiver, 1)).bodies() == [b"later"]

    play(scenario)


def test_what_was_prefetched_and_not_taken_is_given_back_without_a_count(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(*(b"%d" % number for number in range(50)))
        receiver, other = client.receiver(queue, QueueReceiverOptions(prefetch=20)), client.receiver(queue)
        first = await take(receiver, 1)
        link = receiver._link
        assert link is not None
        await until(lambda: link._untaken >= 10)
        assert len(await receiver.receive(100, max_wait_s=0.1)) >= 10, "they were here already"
        await receiver.complete(first)
        await until(lambda: link._untaken > 0)  # of what it asked for when it had given some away
        await receiver.close()
        rest = await other.receive(100, max_wait_s=WAIT_S)
        assert rest and {message.delivery_count for message in rest} == {0}
        again = client.receiver(queue, QueueReceiverOptions(prefetch=20))
        await other.complete(rest)
        await again.close()

    play(scenario)


def test_received_and_deleted_messages_are_gone_and_cannot_be_settled(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(*(b"%d" % number for number in range(20)))
        receiver = client.receiver(queue, DELETING)
        run = await take(receiver, 20)
        assert run.bodies() == [b"%d" % number for number in range(20)]
        assert not await receiver.peek(10)
        with pytest.raises(NotSettled):
            await receiver.complete(run)

    play(scenario)


def test_peek_goes_on_behind_what_it_showed(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(*(b"%d" % number for number in range(5)))
        receiver = client.receiver(queue)
        pages = [(await receiver.peek(2)).sequence_numbers() for _ in range(4)]
        assert pages == [[1, 2], [3, 4], [5], []]
        (second,) = await receiver.peek(1, from_sequence_number=2)
        assert (second.body, second.lock_token, second.locked_until_ms) == (b"1", None, None)
        with pytest.raises(ServiceError, match="no lock"):
            await receiver.complete(second)

    play(scenario)


def test_deleting_takes_the_oldest_and_says_how_many(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(*(b"%d" % number for number in range(5)))
        receiver = client.receiver(queue)
        assert await receiver.delete(2) == 2
        assert (await receiver.peek(1)).bodies() == [b"2"]
        assert await receiver.delete(100, before_ms=1) == 0
        assert await receiver.delete(100) == 3
        assert await receiver.delete(100) == 0

    play(scenario)

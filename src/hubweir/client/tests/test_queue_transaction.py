"""Transactions against a running service: what shows at a commit, what a rollback leaves, and what spoils one."""

from __future__ import annotations

import time

import pytest

from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.control_link import AnswerLost
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.client.queue_transaction import CommitUnknown
from hubweir.client.tests.queue_scenarios import SOON_S, WAIT_S, NewQueue, Play, take
from hubweir.errors import (
    DETACH_FORCED,
    ILLEGAL_STATE,
    MESSAGE_LOCK_LOST,
    RESOURCE_LIMIT,
    TIMED_OUT,
    TRANSACTION_ROLLED_BACK,
    Condition,
    ServiceError,
)
from hubweir.queue.sub_queue import SubQueue
from hubweir.testing.running_namespace import RunningNamespace


async def bodies(client: QueueClient, queue: str) -> list[bytes]:
    """Everything that a queue has, by looking."""
    return [message.body for message in await client.receiver(queue).peek(200, from_sequence_number=1)]


def test_a_send_and_a_completion_show_behind_the_block_together(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        await sender.send(b"request")
        request = await take(receiver, 1)
        async with client.transaction() as transaction:
            await sender.send(b"one", transaction=transaction)
            await sender.send(b"two", QueueMessage(b"three"), transaction=transaction)
            assert await sender.send_all([b"four"], transaction=transaction) == 1
            await receiver.complete(request, transaction=transaction)
            assert await bodies(client, queue) == [b"request"]
        assert await bodies(client, queue) == [b"one", b"two", b"three", b"four"]
        assert (await take(receiver, 4)).bodies() == [b"one", b"two", b"three", b"four"]

    play(scenario)


def test_a_block_that_raises_is_rolled_back_and_its_messages_can_be_settled_again(
    play: Play, new_queue: NewQueue
) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        await sender.send(b"a", b"b", b"c", b"d")
        run = await take(receiver, 4)
        with pytest.raises(KeyError):
            async with client.transaction() as transaction:
                await sender.send(b"never", transaction=transaction)
                await receiver.complete(run[1], transaction=transaction)
                await receiver.dead_letter([run[2]], "bad", transaction=transaction)
                raise KeyError("no such flight")
        assert await bodies(client, queue) == [b"a", b"b", b"c", b"d"]
        assert not await receiver.receive(max_wait_s=SOON_S), "the locks go on"
        await receiver.complete(run[2])
        async with client.transaction() as second:
            await receiver.complete([run[0], run[1]], transaction=second)
        assert await bodies(client, queue) == [b"d"]
        await receiver.complete(run[3])
        with pytest.raises(ServiceError) as settled:
            await receiver.complete(run[1])
        assert settled.value.condition is MESSAGE_LOCK_LOST

    play(scenario)


def test_every_settlement_and_a_cancellation_can_be_part_of_a_transaction(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        await sender.send(b"abandoned", b"deferred", b"dead", b"old")
        (number,) = await sender.schedule([b"scheduled"], int(time.time() * 1000) + 3_600_000)
        run = await take(receiver, 4)
        await receiver.defer(run[3])
        old = await receiver.receive_deferred(run[3].sequence_number)
        async with client.transaction() as transaction:
            await receiver.abandon(run[0], {"tried": 1}, transaction=transaction)
            await receiver.defer(run[1], {"later": True}, transaction=transaction)
            await receiver.dead_letter(run[2], "bad", "no wheels", transaction=transaction)
            await receiver.complete(old, transaction=transaction)
            await sender.cancel(number, transaction=transaction)
            assert len(await bodies(client, queue)) == 5
        (again,) = await take(receiver, 1)
        assert (again.body, again.delivery_count, again.properties) == (b"abandoned", 1, {"tried": 1})
        (deferred,) = await receiver.receive_deferred(run[1].sequence_number)
        assert (deferred.body, deferred.properties) == (b"deferred", {"later": True})
        (dead,) = await take(client.receiver(queue, QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS)), 1)
        assert (dead.body, dead.dead_letter_reason) == (b"dead", "bad")
        assert await bodies(client, queue) == [b"abandoned", b"deferred"]

    play(scenario)


def test_a_message_that_is_sent_in_a_transaction_can_say_when_it_is_to_become_active(
    play: Play, new_queue: NewQueue
) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        at_ms = int(time.time() * 1000) + 3_600_000
        async with client.transaction() as transaction:
            later = QueueMessage(b"later", scheduled_at_ms=at_ms)
            await client.sender(queue).send(later, transaction=transaction)
        (message,) = await client.receiver(queue).peek()
        assert (message.body, message.state) == (b"later", "scheduled")
        await client.sender(queue).cancel(message.sequence_number)

    play(scenario)


def test_a_message_moves_from_one_queue_to_another(play: Play, new_queue: NewQueue) -> None:
    source, target = new_queue(), new_queue()

    async def scenario(client: QueueClient) -> None:
        await client.sender(source).send(b"a", b"b")
        receiver = client.receiver(source)
        for message in await take(receiver, 2):
            async with client.transaction() as transaction:
                await client.sender(target).send(message.body, transaction=transaction)
                await receiver.complete(message, transaction=transaction)
        assert (await bodies(client, source), await bodies(client, target)) == ([], [b"a", b"b"])

    play(scenario)


def test_a_message_of_a_session_is_settled_again_behind_a_rollback(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue(requires_session=True)

    async def scenario(client: QueueClient) -> None:
        await client.sender(queue).send(QueueMessage(b"a", session_id="s"))
        session = await client.accept_session(queue, "s", max_wait_s=WAIT_S)
        run = await take(session, 1)
        with pytest.raises(ValueError):
            async with client.transaction() as transaction:
                await session.complete(run, transaction=transaction)
                raise ValueError
        assert await bodies(client, queue) == [b"a"]
        await session.complete(run)
        assert await bodies(client, queue) == []

    play(scenario)


def test_a_call_that_is_refused_spoils_the_transaction_though_the_block_goes_on(
    play: Play, new_queue: NewQueue
) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        await sender.send(b"request")
        run = await take(receiver, 1)
        with pytest.raises(ServiceError) as over:
            async with client.transaction() as transaction:
                await receiver.complete(run, transaction=transaction)
                await sender.send(*(b"%d" % number for number in range(100)), transaction=transaction)
                with pytest.raises(ServiceError) as refused:
                    await sender.send(b"one more", transaction=transaction)
                assert refused.value.condition is RESOURCE_LIMIT
        assert over.value.condition is TRANSACTION_ROLLED_BACK
        assert "Can't send more than 100 messages" in over.value.text
        assert await bodies(client, queue) == [b"request"]
        # A settlement that is refused spoils it here, too, which the service would not do.
        await receiver.complete(run)
        with pytest.raises(ServiceError, match="settled before"):
            async with client.transaction() as transaction:
                await sender.send(b"answer", transaction=transaction)
                other = await take_of(client, queue)
                await receiver.complete(other, transaction=transaction)
                with pytest.raises(ServiceError):
                    await receiver.complete(other, transaction=transaction)
        assert await bodies(client, queue) == [b"other"]

    async def take_of(client: QueueClient, name: str) -> object:
        await client.sender(name).send(b"other")
        return (await take(client.receiver(name), 1))[0]

    play(scenario)


def test_a_lock_that_has_ended_is_told_at_the_commit(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        await sender.send(b"request")
        (request,) = await take(receiver, 1)
        with pytest.raises(ServiceError) as over:
            async with client.transaction() as transaction:
                await sender.send(b"answer", transaction=transaction)
                await receiver.complete(request, transaction=transaction)
                twin = client.receiver(queue)
                await twin._requests.settle("completed", [request.run.token(0)], {}, None)  # by somebody else
        assert over.value.condition is TRANSACTION_ROLLED_BACK
        assert MESSAGE_LOCK_LOST.symbol in over.value.text
        assert await bodies(client, queue) == []

    play(scenario)


def test_a_transaction_ends_with_its_connection_and_the_next_one_has_another(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender = client.sender(queue)
        with pytest.raises(ServiceError) as over:
            async with client.transaction() as transaction:
                await sender.send(b"lost", transaction=transaction)
                await (await client._connection.now()).close()
                await sender.send(b"outside")
                with pytest.raises(ServiceError) as late:
                    await sender.send(b"lost, too", transaction=transaction)
                assert late.value.condition is TRANSACTION_ROLLED_BACK
        assert over.value.condition is TRANSACTION_ROLLED_BACK
        assert await bodies(client, queue) == [b"outside"]
        with pytest.raises(ServiceError) as unused:
            async with client.transaction() as transaction:
                await (await client._connection.now()).close()
        assert unused.value.condition is TRANSACTION_ROLLED_BACK
        async with client.transaction() as transaction:
            await sender.send(b"kept", transaction=transaction)
        assert await bodies(client, queue) == [b"outside", b"kept"]

    play(scenario)


@pytest.mark.parametrize("condition", [TIMED_OUT, DETACH_FORCED], ids=["silence", "the end of the link"])
def test_a_commit_without_an_answer_is_not_known(
    play: Play, new_queue: NewQueue, monkeypatch: pytest.MonkeyPatch, condition: Condition
) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        with pytest.raises(CommitUnknown) as unknown:
            async with client.transaction() as transaction:
                await client.sender(queue).send(b"a", transaction=transaction)
                control = (transaction._open or pytest.fail()).control
                if condition is TIMED_OUT:
                    monkeypatch.setattr(control, "on_settled", lambda event: None)
                    control._connection.timeout_s = SOON_S
                else:
                    monkeypatch.setattr(control, "on_settled", lambda event: control.fail(ServiceError(condition, "")))
        assert unknown.value.condition is condition and isinstance(unknown.value.__context__, AnswerLost)
        assert await bodies(client, queue) == [b"a"]

    play(scenario)


def test_a_transaction_is_used_inside_its_block_and_opened_once(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, made = client.sender(queue), client.transaction()
        for _ in range(2):  # before, and behind
            with pytest.raises(ServiceError) as closed:
                await sender.send(b"a", transaction=made)
            assert closed.value.condition is ILLEGAL_STATE
            made = client.transaction()
            async with made:
                with pytest.raises(ServiceError) as twice:
                    async with made:
                        pass
                assert twice.value.condition is ILLEGAL_STATE
        assert await bodies(client, queue) == []

    play(scenario)


def test_transactions_without_a_loop(namespace: RunningNamespace, new_queue: NewQueue) -> None:
    queue = new_queue()
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        sender, receiver = client.sender(queue), client.receiver(queue)
        sender.send(b"request")
        run = receiver.receive(1, max_wait_s=WAIT_S)
        with pytest.raises(KeyError), client.transaction() as transaction:
            sender.send(b"never", transaction=transaction)
            receiver.complete(run, transaction=transaction)
            raise KeyError
        with client.transaction() as transaction:
            sender.submit(b"answer", transaction=transaction).result(WAIT_S)
            receiver.complete(run, transaction=transaction)
        assert [message.body for message in receiver.peek(5, from_sequence_number=1)] == [b"answer"]

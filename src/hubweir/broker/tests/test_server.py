"""Every command over a real socket pair: the same answers as by a call, bounds that hold, and ends that free.

Long because one pair of ends serves all of it.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.alarms import DAMAGE
from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.capture import AskCaptureState, CaptureState
from hubweir.broker.commands.command import DECLARED, Answer, Command, KeeperCommand, Owner
from hubweir.broker.commands.forwarding import ListOpenTransfers, OpenTransfersListed, StoreTransfer
from hubweir.broker.commands.fragment import CreateFragment, DeleteFragment, OpenFragment
from hubweir.broker.commands.partition import (
    AppendEvents,
    AskPartitionInfo,
    ChangePartition,
    CreatePartition,
    DeletePartition,
    EventsAppended,
    OpenPartition,
    PartitionInfo,
    PartitionPurged,
    PurgePartition,
)
from hubweir.broker.commands.process import (
    AskCounters,
    CapPartitions,
    CloseOwner,
    CountersTaken,
    Done,
    RaiseEpoch,
    Refusal,
)
from hubweir.broker.commands.producer import (
    AlreadyAppended,
    AppendNumbered,
    CloseProducer,
    OpenProducer,
    ProducerOpened,
)
from hubweir.broker.commands.reader import (
    CancelRead,
    CloseReader,
    ConfirmReaderClosed,
    EventsRead,
    OpenReader,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
)
from hubweir.broker.commands.status import AskReaders, AskStatus, ReadersTold, StatusTold
from hubweir.broker.commands.topic import CreateTopic, OpenTopic
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.broker.hosted_fragment import HostedFragment
from hubweir.broker.hosted_topic import HostedTopic
from hubweir.broker.server import BrokerServer, run_is_sound
from hubweir.broker.socket_broker import SocketBroker
from hubweir.broker.wire import FRAME_LIMIT_BYTES, encode_frame
from hubweir.drivers.broker_driver import connect_stream
from hubweir.event_hub.event_position import EARLIEST
from hubweir.kernels.stored_batch import HEADER_SIZE, KIND_CONTROL, KIND_OPERATIONS
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import Producer, begin_batch, seal_batch

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def sealed(size: int, producer: Producer | None = None, *, kind: int = 1, batches: int = 1) -> bytearray:
    """Batches of one record each; the broker's end looks at headers and checksums only."""
    run = bytearray()
    for _ in range(batches):
        start = begin_batch(run, producer=producer)
        run += b"r" * size
        seal_batch(run, start, count=0 if kind == KIND_CONTROL else 1, kind=kind)
    return run


class Pair:
    """A broker behind one end of a socket pair, and who asks at the other."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.broker = SocketBroker()

    async def start(self, **bounds: int) -> "Pair":
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self.server = BrokerServer(self.bench.broker, **bounds)
        self.bench.broker.on_push = self.server.push
        self.bench.env.call_soon = asyncio.get_running_loop().call_soon
        await connect_stream(theirs, self.server.driver)
        self.driver = await connect_stream(ours, self.broker.driver)
        return self

    async def ask(self, command: Command) -> Answer:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.broker.submit(command, answered.set_result)
        return await answered

    def later(self, command: Command) -> "asyncio.Future[Answer]":
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.broker.submit(command, answered.set_result)
        return answered

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        self.broker.close()
        self.server.close()
        await asyncio.sleep(0.01)


def test_every_command_is_answered_over_a_socket_as_by_a_call(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        seen: list[type] = []

        async def ask(command: Command) -> Answer:
            seen.append(type(command))
            return await pair.ask(command)

        owner = Owner(1, 7)
        assert await ask(CreatePartition("b", "orders", "1", Durability.RELAXED, 5_000)) == Done()
        assert await ask(OpenPartition("b", "orders", "1", Durability.RELAXED, 5_000)) == Done()
        seen.append(AppendEvents)
        events = sealed(100)
        appended = pair.later(AppendEvents("a", events))
        await pair.until(lambda: len(bench.log.records) == len(events))
        bench.log.complete()
        assert await appended == EventsAppended(0, len(events))
        assert bytes(bench.log.records) == bytes(events)
        opened = await ask(OpenReader("a", owner, "$Default", EARLIEST, None, "me"))
        assert opened == ReaderOpened(1, 0)
        read = await ask(ReadEvents("a", 1, 1_000_000, 0))
        assert isinstance(read, EventsRead) and bytes(read.run) == bytes(events)
        producer = await ask(OpenProducer("a", owner, 7, 0, 0))
        assert producer == ProducerOpened(1, 7, 0, 0)
        seen.append(AppendNumbered)
        numbered = sealed(5, Producer(7, 0, 1))
        before, stored = len(events), pair.later(AppendNumbered("a", 1, numbered[:]))
        await pair.until(lambda: len(bench.log.records) > before)
        bench.log.complete()
        assert await stored == EventsAppended(before, len(bench.log.records))
        assert await pair.ask(AppendNumbered("a", 1, numbered)) == AlreadyAppended()
        assert await ask(CloseProducer("a", 1)) == Done()
        assert isinstance(await ask(ReadEvents("a", 1, 1_000_000, 0)), EventsRead)
        waiting = pair.later(ReadEvents("a", 1, 1_000_000, 60_000))
        assert await ask(CancelRead("a", 1)) == Done()
        assert await waiting == EventsRead(1, before + len(numbered), before + len(numbered), b"")
        assert await ask(CloseReader("a", 1)) == Done()
        assert await ask(ConfirmReaderClosed("a", 1)) == Done()
        assert await ask(CloseOwner(owner)) == Done()
        info = await ask(AskPartitionInfo("a"))
        assert isinstance(info, PartitionInfo) and info.last_sequence_number == len(events) + len(numbered) - 1
        captured = await ask(AskCaptureState("a"))
        assert isinstance(captured, CaptureState) and not captured.is_running
        assert await ask(ChangePartition("a", Durability.RELAXED, 1)) == Done()
        assert await ask(CapPartitions(False)) == Done()
        counted = await ask(AskCounters())
        assert isinstance(counted, CountersTaken) and counted.values["broker.partitions"] == 2
        bench.broker.alarms.begin(DAMAGE, "a log", "x")
        told = await ask(AskStatus())
        assert isinstance(told, StatusTold) and [alarm.kind for alarm in told.alarms] == ["damage"]
        assert {(log.log_id, log.next_index, log.behind_events) for log in told.logs} == {
            ("a", len(bench.log.records), -1), ("b", 0, -1),
        }  # fmt: skip
        assert await ask(AskReaders()) == ReadersTold(())
        assert await ask(PurgePartition("b")) == PartitionPurged(0, 0)
        assert await ask(ListOpenTransfers()) == OpenTransfersListed(())
        assert await ask(RaiseEpoch(40)) == Done()
        assert await ask(DeletePartition("b")) == Done()
        missing = await ask(AskPartitionInfo("b"))
        assert isinstance(missing, Refusal) and missing.condition.symbol == "com.microsoft:entity-moved"
        of_fragments = {CreateFragment, OpenFragment, DeleteFragment, *HostedFragment.handlers}
        of_fragments |= {CreateTopic, OpenTopic, *HostedTopic.handlers}
        of_others = {
            *of_fragments,
            *(made for made in DECLARED.values() if issubclass(made, KeeperCommand | ProcessCommand)),
        }
        assert set(seen) == {made for made in DECLARED.values() if issubclass(made, Command)} - of_others
        await pair.close()

    run(scenario())


def test_the_end_of_a_peer_frees_its_readers_though_a_read_waits(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        await pair.ask(OpenReader("a", Owner(5, 1), "$Default", EARLIEST, None, None))
        bench.ask(OpenReader("a", Owner(6, 1), "$Default", EARLIEST, None, None))
        pair.later(ReadEvents("a", 1, 1_000, 60_000))
        pair.driver.abort()
        start = time.monotonic()
        await pair.until(lambda: bench.ask(AskCounters())[0].values["broker.readers"] == 1)
        assert time.monotonic() - start < 30, "it waits for the read, which has a minute"
        assert bench.ask(CancelRead("a", 2)) == [Done()]

    run(scenario())


def test_what_was_asked_when_the_stream_ends_is_unknown_and_later_commands_are_refused(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        events = sealed(10)
        appended = pair.later(AppendEvents("a", events))
        await pair.until(lambda: len(bench.log.records) > 0)
        pair.server.close()
        outcome = await appended
        assert isinstance(outcome, Refusal) and not outcome.known
        assert outcome.condition.symbol == "com.microsoft:timeout"
        after = await pair.ask(AskCounters())
        assert isinstance(after, Refusal) and after.known
        # The broker goes on with what it has.
        bench.log.complete()
        assert bench.ask(AskPartitionInfo("a"))[0].last_sequence_number == len(events) - 1

    run(scenario())


def test_a_push_reaches_the_process_that_it_concerns(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        pushed: list[ReaderClosed] = []
        pair.broker.listen(pushed.append)
        await pair.ask(OpenReader("a", Owner(5, 1), "$Default", EARLIEST, None, None))
        bench.ask(OpenReader("a", Owner(6, 1), "$Default", EARLIEST, None, None))
        await pair.ask(DeletePartition("a"))
        assert [push.owner for push in pushed] == [Owner(5, 1)]
        await pair.close()

    run(scenario())


@pytest.mark.parametrize("at", [0, 4, 24, HEADER_SIZE, HEADER_SIZE + 99])
def test_a_run_that_was_damaged_on_the_way_is_refused_and_not_stored(run: Run, bench: Any, at: int) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        events = sealed(100)
        events[at] ^= 1
        answer = await pair.ask(AppendEvents("a", events))
        assert isinstance(answer, Refusal) and answer.known
        assert answer.condition.symbol == "amqp:decode-error"
        assert bench.log.records == b""
        await pair.close()

    run(scenario())


def test_a_transaction_that_sends_nothing_has_no_run_and_one_that_sends_a_sound_one(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        damaged = sealed(100)
        damaged[-1] ^= 1
        for messages, condition in ((bytearray(), "amqp:not-allowed"), (damaged, "amqp:decode-error")):
            answer = await pair.ask(
                CommitTransaction("a", (), b"", (), (), 0, 0, messages)
            )  # "a" is a partition: it knows none
            assert isinstance(answer, Refusal) and answer.condition.symbol == condition
        await pair.close()

    run(scenario())


def test_a_transfer_that_is_asked_for_has_no_run_and_one_with_messages_a_sound_one(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        damaged = sealed(100)
        damaged[-1] ^= 1
        for messages, events, condition in (
            (0, bytearray(), "amqp:not-allowed"),
            (1, bytearray(), "amqp:decode-error"),
            (1, damaged, "amqp:decode-error"),
            (0, damaged, "amqp:decode-error"),
        ):
            answer = await pair.ask(StoreTransfer("a", b"source", 1, 1, messages, b"", events))
            assert isinstance(answer, Refusal) and answer.condition.symbol == condition
        await pair.close()

    run(scenario())


@pytest.mark.parametrize(
    ("events", "sound"),
    [
        (sealed(100, batches=1_000), True),
        (sealed(100), True),
        (bytearray(), False),
        (sealed(100) + b"\x00", False),
        (sealed(100)[:-1], False),
        (sealed(100, kind=KIND_CONTROL), False),
        (sealed(100) + sealed(100, kind=KIND_OPERATIONS), False),
    ],
    ids=["many", "one", "none", "a byte more", "a byte less", "control", "operations"],
)
def test_only_whole_batches_of_events_are_sound(events: bytearray, sound: bool) -> None:
    assert run_is_sound(events) is sound


def test_a_large_run_crosses_whole(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        events = sealed(3 * 1024 * 1024)
        appended = pair.later(AppendEvents("a", bytearray(events)))
        small = pair.later(AskCounters())
        await pair.until(lambda: len(bench.log.records) == len(events))
        bench.log.complete()
        await appended
        assert bytes(bench.log.records) == bytes(events)
        assert isinstance(await small, CountersTaken)
        await pair.ask(OpenReader("a", Owner(1, 1), "$Default", EARLIEST, None, None))
        read = await pair.ask(ReadEvents("a", 1, len(events), 0))
        assert isinstance(read, EventsRead) and bytes(read.run) == bytes(events)
        await pair.close()

    run(scenario())


def test_a_full_inbox_stops_reading_until_half_is_answered(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start(inbox_commands=10)
        events = sealed(300_000)  # more than the receive buffer, so that frames do not come all at once
        answers = [pair.later(AppendEvents("a", bytearray(events))) for _ in range(40)]
        await pair.until(lambda: pair.server.commands_under_way >= 10)
        await asyncio.sleep(0.1)
        assert pair.server.commands_under_way <= 12
        while not all(answer.done() for answer in answers):
            bench.log.complete()
            await asyncio.sleep(0.001)
        firsts = [answer.result().first_sequence_number for answer in answers]  # type: ignore[union-attr]
        assert firsts == [number * len(events) for number in range(40)]
        await pair.close()

    run(scenario())


def test_waiting_reads_do_not_fill_the_inbox(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start(inbox_commands=4)
        for number in range(20):
            await pair.ask(OpenReader("a", Owner(1, 1), f"group-{number}", EARLIEST, None, None))
        reads = [pair.later(ReadEvents("a", number, 10, 60_000)) for number in range(1, 21)]
        assert isinstance(await pair.ask(AskCounters()), CountersTaken)
        await pair.ask(CloseOwner(Owner(1, 1)))
        answers = await asyncio.gather(*reads)
        assert [type(answer) for answer in answers] == [EventsRead] * 20
        await pair.close()

    run(scenario())


@pytest.mark.parametrize("sent", [b"\xff" * 8, b"\x00\x00\x00\x04\x00\x00\x00\x00abcd"], ids=["too large", "no frame"])
def test_bytes_that_are_no_frames_end_the_stream_and_only_it(run: Run, bench: Any, sent: bytes) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        other = await Pair(bench).start()
        pair.driver.send([sent])
        await pair.until(lambda: pair.broker._driver is None)
        assert isinstance(await other.ask(AskCounters()), CountersTaken)
        await other.close()

    run(scenario())


def test_a_command_too_large_for_a_frame_is_refused_here(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        answer = await pair.ask(AppendEvents("a", bytearray(FRAME_LIMIT_BYTES)))
        assert isinstance(answer, Refusal) and answer.known
        assert "over the limit" in answer.text
        assert isinstance(await pair.ask(AskCounters()), CountersTaken)
        await pair.close()

    run(scenario())


def test_an_answer_to_a_request_that_nobody_made_ends_the_stream(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = await Pair(bench).start()
        assert pair.server._driver is not None
        pair.server._driver.send(encode_frame(99, Done()))
        await pair.until(lambda: pair.broker._driver is None)
        await pair.close()

    run(scenario())


def test_commands_beyond_the_limit_of_the_asking_end_are_refused(run: Run, bench: Any) -> None:
    async def scenario() -> None:
        pair = Pair(bench)
        pair.broker = SocketBroker(outstanding_limit=1)
        await pair.start()
        first = pair.later(AppendEvents("a", sealed(10)))
        second = await pair.ask(AskCounters())
        assert isinstance(second, Refusal) and second.condition.symbol == "com.microsoft:server-busy"
        await pair.until(lambda: len(bench.log.records) > 0)
        bench.log.complete()
        assert isinstance(await first, EventsAppended)
        await pair.close()

    run(scenario())

"""One partition, idempotent producers that retry, crashes at any point, and a model that says what must be stored.

A producer sends transfers numbered on, several at a time, sends some of them twice, and after any refusal, unknown
outcome or crash attaches anew and sends again from the first one that was not accepted. Afterwards the log is read
back: each producer's numbers stand there from 1 on, each once, in order, with the bodies that were sent, and at least
as far as was ever accepted. Whoever was told its epoch is never followed by a link with a lower one. Sinks that resume
are resuming_sink.py. `Violation` is raised at the first thing that does not hold.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NoReturn

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.partition import CreatePartition, EventsAppended
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered, OpenProducer, ProducerOpened
from hubweir.broker.hosted_partition import HostedPartition
from hubweir.broker.tests.resuming_sink import ResumingSink
from hubweir.counters import Counters
from hubweir.errors import StoreError
from hubweir.event_hub.open_run import OpenRun
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import Producer, headers_of, producer_of
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.answers import opened_log, runs_of
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

LOG_ID = "0123456789abcdef" * 2
HOUR_MS = 3_600_000
SETTINGS = LogSettings(segment_bytes=20_000, tail_bytes=3_000, idle_mark_ms=100)


class Violation(BaseException):
    """A promise does not hold. No Exception: a log contains those that are raised in its callbacks."""


def body_of(producer_id: int, number: int, round_number: int = 0) -> bytes:
    return b"<%d:%d:%d>" % (producer_id, number, round_number)


def transfer(producer: Producer, count: int) -> bytearray:
    """The run of one delivery: an envelope of count events from producer.first_number on."""
    bodies = [body_of(producer.producer_id, producer.first_number + at, producer.round) for at in range(count)]
    messages = [encode_message(Message(body=DataBody((body,)))) for body in bodies]
    data = b"".join(b"\x00\x53\x75\xb0" + len(message).to_bytes(4, "big") + message for message in messages)
    run = OpenRun()
    run.add_deliveries(data, array("q", [0, 0, len(data), 0, BATCH_FORMAT]), 0, 1, producer=producer)
    return run.take_run()


class Sender:
    """One producer's client: what it sent, what was accepted, and the link it has now."""

    def __init__(self, world: NumberedWorld, producer_id: int) -> None:
        self.world = world
        self.producer_id = producer_id
        self.epoch = 0
        self.granted = 0  # the highest epoch that an attach was ever answered with
        self.accepted = 0  # every number up to here was accepted
        self.sizes: dict[int, int] = {}  # first number -> count: a retry sends the same transfer
        self.attached(None)

    def attached(self, opening: int | None) -> None:
        self.opening = opening
        self.opened_in = self.world.life
        self.next = self.accepted + 1
        self.is_broken = False
        self.is_opening = False

    def act(self, random: Random) -> None:
        """Attach, send the next transfer, or send an old one again."""
        if self.is_opening and self.opened_in == self.world.life:
            return
        if self.granted and random.random() < 0.1:
            self.intrude()
        elif self.opening is None or self.is_broken or self.opened_in != self.world.life:
            self.open(random)
        elif random.random() < 0.3 and self.next > 1:
            first = random.choice([number for number in self.sizes if number < self.next])
            self.send(first, self.sizes[first], repeated=True)
        else:
            count = self.sizes.setdefault(self.next, random.choice([1, 1, 2, 5]))
            self.send(self.next, count, repeated=False)
            self.next += count

    def open(self, random: Random) -> None:
        self.attached(None)
        self.is_opening = True
        self.epoch += random.choice([0, 1])
        life = self.world.life

        def answered(answer: Answer) -> None:
            if isinstance(answer, ProducerOpened):
                self.granted = max(self.granted, answer.epoch)
            if life == self.world.life:
                self.attached(answer.opening_id if isinstance(answer, ProducerOpened) else None)

        command = OpenProducer(LOG_ID, Owner(1, self.producer_id), self.producer_id, self.epoch, self.accepted)
        self.world.broker.submit(command, answered)

    def intrude(self) -> None:
        """Somebody with the epoch before tries to come in."""
        epoch = self.granted - 1

        def answered(answer: Answer) -> None:
            if isinstance(answer, ProducerOpened):
                self.world.violate(f"{self.producer_id}: epoch {epoch} was let in behind {epoch + 1}")

        command = OpenProducer(LOG_ID, Owner(9, self.producer_id), self.producer_id, epoch, self.accepted)
        self.world.broker.submit(command, answered)

    def send(self, first: int, count: int, *, repeated: bool) -> None:
        assert self.opening is not None
        opening, life = self.opening, self.world.life
        run = transfer(Producer(self.producer_id, self.epoch, first), count)

        def answered(answer: Answer) -> None:
            if life != self.world.life:
                raise Violation("an answer of a process that has ended")
            if isinstance(answer, EventsAppended | AlreadyAppended):
                if repeated and isinstance(answer, EventsAppended):
                    raise Violation(f"{self.producer_id}: events {first} on were stored a second time")
                self.accepted = max(self.accepted, first + count - 1)
            elif opening == self.opening:
                self.is_broken = True

        self.world.broker.submit(AppendNumbered(LOG_ID, opening, run), answered)


class NumberedWorld:
    """See the module's text. The same seed plays the same history."""

    log_id = LOG_ID
    transfer = staticmethod(transfer)

    def __init__(
        self, seed: int, *, producers: int = 2, sinks: int = 0, durability: Durability = Durability.DURABLE
    ) -> None:
        """RELAXED: the process is killed, the power is never cut."""
        self.durability = durability
        self.random = Random(f"numbered {seed}")
        self.env = SimulatedEnv(seed)
        self.life = 0
        self.broker = self._start()
        self.senders = [Sender(self, number + 1) for number in range(producers)]
        self.sinks = [ResumingSink(self, number + 101) for number in range(sinks)]

    def violate(self, text: str) -> NoReturn:
        raise Violation(text)

    def play(self, steps: int) -> None:
        for _ in range(steps):
            chance = self.random.random()
            if chance < 0.04:
                self.crash(power_cut=self.random.random() < 0.7)
            elif chance < 0.07:
                self.env.files.plan(self.random.choice([Fault.SYNC_EIO, Fault.ENOSPC]), self.random.randrange(1, 6))
            elif chance < 0.10:
                self.env.run_for(11_000)  # a sweep: maybe a snapshot
            elif chance < 0.45:
                self.env.run_for(self.random.randrange(30))
            else:
                self.random.choice([*self.senders, *self.sinks]).act(self.random)

    def finish(self) -> None:
        """Let everyone get through, then hold the log against the model."""
        self.env.files.heal()
        self.crash(power_cut=True)
        for sender in [*self.senders, *self.sinks]:
            for _ in range(4):
                sender.act(self.random)
                self.env.run_for(200)
        self.check()

    def crash(self, *, power_cut: bool) -> None:
        self.env.crash(power_cut=power_cut and self.durability is Durability.DURABLE)
        self.life += 1
        self.env.files.heal()
        self.env = self.env.restart()
        self.broker = self._start()
        self.check()

    def check(self) -> None:
        """Every number from 1 on once, in order, with its body, and as far as was accepted."""
        last: Counter[tuple[int, int]] = Counter()
        newest: Counter[int] = Counter()
        for producer, count, records in self._stored():
            key = producer.producer_id, producer.round
            if producer.first_number != last[key] + 1:
                raise Violation(f"{producer} is stored behind number {last[key]}")
            if producer.round < newest[producer.producer_id]:
                raise Violation(f"{producer} is stored behind round {newest[producer.producer_id]}")
            newest[producer.producer_id] = producer.round
            last[key] += count
            for number in range(producer.first_number, producer.first_number + count):
                if body_of(producer.producer_id, number, producer.round) not in records:
                    raise Violation(f"event {number} of producer {producer.producer_id} has another body")
        accepted = {(sender.producer_id, 0): sender.accepted for sender in self.senders}
        for sink in self.sinks:
            accepted |= {(sink.producer_id, number + 1): rows for number, rows in sink.accepted.items()}
        for key, number in accepted.items():
            if last[key] < number:
                raise Violation(f"{key}: {number} accepted, {last[key]} stored")

    def _stored(self) -> Iterator[tuple[Producer, int, bytes]]:
        for run in runs_of(self.env, opened_log(self.env, self.store, LOG_ID)):
            for header in headers_of(run.data):
                producer = producer_of(run.data, header)
                if producer is not None:
                    yield producer, header.count, bytes(run.data[header.records_at : header.end])

    @property
    def hosted(self) -> HostedPartition:
        """The partition, as its owner has it now."""
        resident = self.broker._residents.by_log_id[LOG_ID]
        assert isinstance(resident, HostedPartition)
        return resident

    def _start(self) -> Broker:
        for _ in range(5):
            try:
                self.store = MessagingStore.open(self.env, "store-0", settings=SETTINGS)
                break
            except (OSError, StoreError):
                self.env.files.heal()
        broker = Broker(self.env, self.store, Counters())
        answers: list[Any] = []
        broker.submit(CreatePartition(LOG_ID, "orders", "0", self.durability, HOUR_MS), answers.append)
        broker.start()
        while not answers:  # it is opened away from the loop
            self.env.run_for(1)
        return broker

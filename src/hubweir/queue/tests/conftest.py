"""A bench with one fragment on a real log in a simulated world: messages go in, come out, and crashes come between."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest

from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, decode_message, encode_message
from hubweir.amqp.types.values import Symbol, Timestamp
from hubweir.errors import ServiceError
from hubweir.kernels import ingest
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    INGEST_DONE,
    MESSAGE_WIDTH,
    Q_DELIVERY_COUNT,
    Q_ENQUEUED_MS,
    Q_EXPIRES_MS,
    Q_ID_NUMBER,
    Q_LOCK,
    Q_LOCK_CHECK,
    Q_LOCKED_UNTIL_MS,
    Q_RECORD,
    Q_SEQUENCE_NUMBER,
    Q_STATE,
    Q_TTL_MS,
)
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.record import begin_batch, seal_batch
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.queue.fragment import Fragment, FragmentReceiver, NumberRange, ReceivedMessages, Times
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.operation import Operation
from hubweir.queue.settle_outcome import SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.testing.answers import answered, made_log
from hubweir.testing.simulated_env import SimulatedEnv

LOG_ID = "cd" * 16
SEGMENTS = LogSettings(segment_bytes=64 * 1024, tail_bytes=16 * 1024)
PEEK_LOCK, DELETE = ReceiveMode.PEEK_LOCK, ReceiveMode.RECEIVE_AND_DELETE
MASK = 2**64 - 1


def message(
    body: bytes | str,
    *,
    message_id: object = None,
    session: str | None = None,
    key: str | None = None,
    ttl_ms: int | None = None,
    scheduled_ms: int | None = None,
    properties: dict[str, object] | None = None,
    annotations: dict[str, object] | None = None,
) -> bytes:
    """An encoded message."""
    annotated: dict[object, object] = {Symbol(name): value for name, value in (annotations or {}).items()}
    if scheduled_ms is not None:
        annotated[Symbol("x-opt-scheduled-enqueue-time")] = Timestamp(scheduled_ms)
    if key is not None:
        annotated[Symbol("x-opt-partition-key")] = key
    return encode_message(
        Message(
            header=None if ttl_ms is None else Header(ttl=ttl_ms),
            properties=Properties(message_id=message_id, group_id=session)
            if message_id or session is not None
            else None,
            message_annotations=annotated or None,
            application_properties=properties,
            body=DataBody([body.encode() if isinstance(body, str) else body]),
        )
    )


def run_of(*messages: bytes, size: int = 1000) -> bytearray:
    """A sealed run: batches of so many messages, one chain."""
    run = bytearray()
    for first in range(0, len(messages), size):
        some = messages[first : first + size]
        start = begin_batch(run)
        for each in some:
            rows = array("q", [0, 0, len(each), 0, 0])
            assert len(rows) == DELIVERY_WIDTH
            assert ingest(each, rows, 0, 1, 0, None, run, 1 << 30)[3] == INGEST_DONE
        seal_batch(run, start, count=len(some), continues=first + size < len(messages))
    return run


@dataclass(frozen=True)
class Got:
    """One message as it was received."""

    number: int
    body: bytes
    deliveries: int
    state: int
    token: bytes
    enqueued_ms: int
    locked_until_ms: int
    ttl_ms: int
    expires_ms: int
    id_number: int
    properties: dict[str, object] | None


def opened(received: ReceivedMessages) -> list[Got]:
    """The messages of an answer."""
    found = []
    for at in range(0, len(received.rows), MESSAGE_WIDTH):
        row = received.rows[at : at + MESSAGE_WIDTH]
        start = row[Q_RECORD]
        end = start + int.from_bytes(received.run[start : start + 4], "big")
        body, properties = _decoded(bytes(received.run[start + RECORD_HEADER_SIZE : end]))
        lock, check = row[Q_LOCK], row[Q_LOCK_CHECK]
        token = b"" if not lock else (lock & MASK).to_bytes(8, "big") + (check & MASK).to_bytes(8, "big")
        found.append(
            Got(
                row[Q_SEQUENCE_NUMBER],
                body,
                row[Q_DELIVERY_COUNT],
                row[Q_STATE],
                token,
                row[Q_ENQUEUED_MS],
                row[Q_LOCKED_UNTIL_MS],
                row[Q_TTL_MS],
                row[Q_EXPIRES_MS],
                row[Q_ID_NUMBER],
                properties,
            )
        )
    return found


@lru_cache(maxsize=1_000)
def _decoded(message: bytes) -> tuple[bytes, dict[str, object] | None]:
    """A message's body and application properties. Kept: models look at the same few messages behind each step, and
    nobody changes what was received."""
    decoded = decode_message(message)
    body = decoded.body
    assert isinstance(body, DataBody)
    return b"".join(bytes(part) for part in body.parts), decoded.application_properties


@dataclass
class QueueBench:
    """One fragment and its owner; `kill`, `cut` and `restart` are its crashes."""

    settings: FragmentSettings = field(default_factory=FragmentSettings)
    env: SimulatedEnv = field(default_factory=lambda: SimulatedEnv(7))
    segments: LogSettings = SEGMENTS
    number: int = 0
    late_ms: int = 0  # by which deadlines ring late, as on a busy loop

    def __post_init__(self) -> None:
        self.open()

    # The owner's part

    def open(self) -> None:
        self.store = MessagingStore.open(self.env, "store-0", settings=self.segments)
        self.log = made_log(self.env, self.store, LOG_ID, durability=self.settings.durability)
        self._timer: Any = None
        self.fragment = Fragment(
            self.log,
            self.settings,
            entity="orders",
            secret=self.env.random_bytes(16),
            wake=self._wake,
            fragment_number=self.number,
        )
        refused = answered(self.env, lambda on_done: self.fragment.load(self.times(), on_done))
        if refused is not None:
            raise refused.error
        self._turn()

    def times(self) -> Times:
        return Times(self.env.now_ms(), self.env.monotonic_ms())

    def _wake(self) -> None:
        self.env.at_turn_end(self._turn)

    def _turn(self) -> None:
        self.fragment.turn(self.times())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self.fragment.next_deadline_ms
        if due_ms is not None:
            self._timer = self.env.call_later(max(0, due_ms - self.env.monotonic_ms()) + self.late_ms, self._turn)

    def restart(self, *, power_cut: bool = True) -> None:
        """The process, or the machine, ends; the next one opens the fragment."""
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()
        self.open()

    def run_for(self, ms: int) -> None:
        self.env.run_for(ms)

    # What clients do

    def enqueue(self, *messages: bytes, wait_ms: int = 50) -> NumberRange | Refused | ServiceError | None:
        answers: list[Any] = []
        self.fragment.enqueue(run_of(*messages), len(messages), self.times(), answers.append)
        self.run_for(wait_ms)
        return answers[0] if answers else None

    def send(self, *bodies: str, wait_ms: int = 50, **named: Any) -> list[int]:
        """Enqueue messages of these bodies; their sequence numbers."""
        numbers = self.enqueue(*(message(body, **named) for body in bodies), wait_ms=wait_ms)
        assert isinstance(numbers, NumberRange), numbers
        return list(range(numbers.first_number, numbers.next_number))

    def receiver(self, sub_queue: SubQueue = SubQueue.MAIN, mode: ReceiveMode = PEEK_LOCK) -> FragmentReceiver:
        return self.fragment.open_receiver(sub_queue, mode)

    def receive(
        self,
        receiver: FragmentReceiver | None = None,
        max_count: int = 100,
        *,
        wait_ms: int = 50,
        max_bytes: int = 1 << 20,
        cancels: bool = True,
    ) -> list[Got]:
        """What there is within a while; an unanswered receive is cancelled."""
        receiver = receiver or self.receiver()
        answers: list[Any] = []
        self.fragment.receive(receiver, max_count=max_count, max_bytes=max_bytes, on_done=answers.append)
        self.run_for(wait_ms)
        if not answers and cancels:
            self.fragment.cancel_receive(receiver)
        (answer,) = answers
        assert isinstance(answer, ReceivedMessages), answer
        return opened(answer)

    def settle(
        self,
        got: list[Got] | bytes,
        outcome: SettleOutcome = SettleOutcome.COMPLETE,
        *,
        details: SettleDetails | None = None,
        wait_ms: int = 50,
    ) -> list[int]:
        """Settle; the codes of the tokens."""
        tokens = got if isinstance(got, bytes) else b"".join(each.token for each in got)
        answer = self.answer(
            lambda on_done: self.fragment.settle(tokens, outcome, self.times(), on_done, details=details), wait_ms
        )
        assert isinstance(answer, bytes), answer
        return list(answer)

    def complete(self, got: list[Got]) -> None:
        assert self.settle(got) == [SETTLED] * len(got)

    def answer(self, ask: Callable[[Callable[[Any], None]], object], wait_ms: int = 50) -> Any:
        answers: list[Any] = []
        ask(answers.append)
        self.run_for(wait_ms)
        (answer,) = answers
        return answer

    def peek(
        self, from_number: int = 1, *, sub_queue: SubQueue = SubQueue.MAIN, session: str | None = None
    ) -> list[Got]:
        answer = self.answer(
            lambda on_done: self.fragment.peek(
                sub_queue, from_number, max_count=1000, max_bytes=1 << 20, on_done=on_done, session_id=session
            ),
            wait_ms=200,
        )
        assert isinstance(answer, ReceivedMessages), answer
        return opened(answer)

    def deferred(self, *numbers: int, mode: ReceiveMode = PEEK_LOCK, sub_queue: SubQueue = SubQueue.MAIN) -> list[Got]:
        answer = self.answer(
            lambda on_done: self.fragment.receive_deferred(sub_queue, array("q", numbers), mode, self.times(), on_done)
        )
        assert isinstance(answer, ReceivedMessages), answer
        return opened(answer)

    def now_ms(self) -> int:
        return self.env.now_ms()


def bodies(got: list[Got]) -> list[str]:
    return [each.body.decode() for each in got]


def logged(bench: QueueBench, code: int) -> list[Operation]:
    """Operations of one code that are gathered from now on, as they come to the log."""
    found: list[Operation] = []
    encoded = bench.fragment.core.encoded

    def watched(operations: Any) -> list[bytes]:
        found.extend(each for each in operations if each.code == code)
        return encoded(operations)

    bench.fragment.core.encoded = watched  # type: ignore[method-assign]
    return found


@pytest.fixture
def bench() -> QueueBench:
    return QueueBench()


@pytest.fixture
def bench_with() -> Callable[..., QueueBench]:
    """Makes a bench with these settings."""
    return lambda **settings: QueueBench(FragmentSettings(**settings))

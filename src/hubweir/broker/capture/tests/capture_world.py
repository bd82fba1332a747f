"""One captured partition on a simulated disk, crashes at any point, and a checker of what is in its files.

`Violation`: an event that was stored is in no finished file, or in two; the order is not the log's; a body is not what
was sent; or a file that was finished has other bytes now.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Callable
from typing import Any

import fastavro
import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.broker.broker import Broker
from hubweir.broker.capture import runner
from hubweir.broker.capture.places import CapturePlaces, CaptureQuota
from hubweir.broker.commands.capture import AskCaptureState, CaptureState
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.partition import AppendEvents, ChangePartition, CreatePartition, EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.capture import avro
from hubweir.capture.capture_mark import MARK_KEY, CaptureMark, unpack_mark
from hubweir.capture.destination import LocalFolder
from hubweir.counters import Counters
from hubweir.event_hub.open_run import OpenRun
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.messaging_store.disk.notes import load_notes
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

LOG_ID = "0123456789abcdef" * 2
HOUR_MS = 3_600_000
SETTINGS = LogSettings(segment_bytes=6_000, tail_bytes=1_500, idle_mark_ms=100)
CAPTURED = CaptureDescription(enabled=True, interval_s=60, size_limit_bytes=2_000)
QUOTA = CaptureQuota()
# Small, so that a small file has several of each.
BLOCK_BYTES, PIECE_BYTES = 500, 700


class Violation(AssertionError):
    """A promise does not hold."""


def envelope(bodies: list[bytes]) -> bytearray:
    """The run of one batch of events."""
    messages = [encode_message(Message(body=DataBody((body,)))) for body in bodies]
    data = b"".join(b"\x00\x53\x75\xb0" + len(message).to_bytes(4, "big") + message for message in messages)
    run = OpenRun()
    run.add_deliveries(data, array("q", [0, 0, len(data), 0, BATCH_FORMAT]), 0, 1)
    return run.take_run()


class CaptureWorld:
    """See the module's text. A context manager that makes pieces and blocks small."""

    def __init__(
        self,
        seed: int = 0,
        *,
        description: CaptureDescription | None = CAPTURED,
        durability: Durability = Durability.DURABLE,
        retention_ms: int = HOUR_MS,
        quota: CaptureQuota = QUOTA,
        files: Callable[[str], MemoryFiles] = MemoryFiles,
        interleaved: float = 0.0,
    ) -> None:
        """interleaved: see SimulatedEnv."""
        self.files = files(str(seed))
        self.env = SimulatedEnv(seed, files=self.files, interleaved=interleaved)
        self.description = description
        self.durability = durability
        self.retention_ms = retention_ms
        self.quota = quota
        self.counters = Counters()
        self.sent = 0
        self.stored: dict[int, bytes] = {}  # sequence number -> body, of what was accepted
        self.unknown: set[bytes] = set()
        self.seen_files: dict[str, bytes] = {}
        self.broker: Broker | None = None

    def __enter__(self) -> CaptureWorld:
        self._sizes = avro.BLOCK_BYTES, runner.PIECE_BYTES
        avro.BLOCK_BYTES, runner.PIECE_BYTES = BLOCK_BYTES, PIECE_BYTES
        return self

    def __exit__(self, *_: object) -> None:
        avro.BLOCK_BYTES, runner.PIECE_BYTES = self._sizes

    # The service

    def open(self) -> None:
        store = MessagingStore.open(self.env, "store-0", settings=SETTINGS)
        places = CapturePlaces(self.files, "capture", quota=self.quota)
        self.broker = Broker(self.env, store, self.counters, sweep_ms=5_000, capture_places=places)
        self.broker.start()
        self.create()

    def create(self) -> None:
        """Host the partition; OSError when the broker refuses."""
        command = CreatePartition(LOG_ID, "hub", "0", self.durability, self.retention_ms, "ns", self.description)
        answers = self.ask(command, run_ms=0)
        while not answers:  # it is opened away from the loop
            self.env.run_for(1)
        [answer] = answers
        if isinstance(answer, Refusal):
            raise OSError(answer.text)

    def ask(self, command: Command, *, run_ms: int = 200) -> list[Answer]:
        answers: list[Answer] = []
        assert self.broker is not None
        self.broker.submit(command, answers.append)
        self.env.run_for(run_ms)
        return answers

    def change(self, description: CaptureDescription | None) -> list[Answer]:
        self.description = description
        return self.ask(ChangePartition(LOG_ID, self.durability, self.retention_ms, description))

    def send(self, count: int = 5, size: int = 20) -> None:
        """A batch; whether it is stored shows later."""
        bodies = [b"%06d" % (self.sent + place) + b"." * size for place in range(count)]
        self.sent += count
        self.unknown.update(bodies)

        def answered(answer: Answer) -> None:
            if isinstance(answer, Refusal) and not answer.known:
                return
            self.unknown.difference_update(bodies)
            if isinstance(answer, EventsAppended):
                self.stored.update(zip(range(answer.first_sequence_number, 10**9), bodies, strict=False))

        assert self.broker is not None
        self.broker.submit(AppendEvents(LOG_ID, envelope(bodies)), answered)

    def run_s(self, seconds: float) -> None:
        self.env.run_for(int(seconds * 1000))

    def restart(self, *, power_cut: bool = False, faults: bool = False) -> None:
        """The process ends here, or the machine; the next one starts. Files that are whole now stay as they are."""
        self.env.crash(power_cut=power_cut)
        if not faults:
            self.files.heal()
        self.look_at_files()
        self.env = self.env.restart()

    def state(self) -> CaptureState:
        [answer] = self.ask(AskCaptureState(LOG_ID))
        assert isinstance(answer, CaptureState)
        return answer

    def mark(self) -> CaptureMark | None:
        """The mark in the log's notes, as a start finds it."""
        note = load_notes(self.files, f"store-0/logs/{LOG_ID}").notes.get(MARK_KEY)
        return None if note is None else unpack_mark(note.body)

    # What is in the files

    def archives(self) -> dict[str, bytes]:
        """The finished files by name."""
        return {name: bytes(self.files.bytes_of(name)) for name in self._below("capture") if name.endswith(".avro")}

    def _below(self, folder: str) -> list[str]:
        found = []
        for name in self.files.list(folder):
            path = f"{folder}/{name}"
            found += [path] if "." in name else self._below(path)
        return found

    def look_at_files(self) -> None:
        """Every file that was finished has the bytes that it had."""
        found = self.archives()
        for name, data in found.items():
            if self.seen_files.setdefault(name, data) != data:
                raise Violation(f"{name} has other bytes than it had")

    def records(self) -> list[list[dict[str, Any]]]:
        """What a standard reader finds, a list for each file, in the order of their names."""
        return [list(fastavro.reader(io.BytesIO(data))) for data in self.archives().values()]

    def check(self, first: int = 0, *, complete: bool = True) -> None:
        """Every event from first on is in one file, once, in order; complete: all that are stored are."""
        self.look_at_files()
        records = [record for file in self.records() for record in file]
        numbers = [record["SequenceNumber"] for record in records]
        if numbers != sorted(set(numbers)):
            raise Violation(f"events twice, or out of order: {numbers[:200]}")
        end = max(numbers, default=-1) + 1
        missing = {number for number in self.stored if first <= number < end} - set(numbers)
        if missing and self.durability is Durability.DURABLE:  # a power cut takes what a relaxed log accepted last
            raise Violation(f"events are in no file: {sorted(missing)}")
        if complete and (rest := [number for number in self.stored if number >= max(first, end)]):
            raise Violation(f"events are in no file yet: {rest}")
        if early := [number for number in numbers if number < first]:
            raise Violation(f"events before capture was enabled: {early}")
        for record in records:
            body = self.stored.get(record["SequenceNumber"])
            if body is None and record["Body"] not in self.unknown or body not in (None, record["Body"]):
                raise Violation(f"event {record['SequenceNumber']} is {record['Body']!r}, sent was {body!r}")


class Away:
    """The local folder, with a switch that takes it away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_away = False
        exists, begin = LocalFolder.exists, LocalFolder.begin

        def asked(step: object) -> object:
            def call(folder: LocalFolder, name: str) -> object:
                if self.is_away:
                    raise OSError("the destination is away")
                return step(folder, name)  # type: ignore[operator]

            return call

        monkeypatch.setattr(LocalFolder, "exists", asked(exists))
        monkeypatch.setattr(LocalFolder, "begin", asked(begin))

"""kill -9 of a server that captures: at random moments under load, and at every step of making a file.

Afterwards the captured files and the log together hold every event that was accepted: files one after another without
a gap or a repeat from the first event on, up to the mark; the log from the mark on. No file that was finished ever has
other bytes than it had.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.sender import Sender
from hubweir.errors import HubweirError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from tests.capture.captured import CapturedFile, captured_files, read_file, wrong_order

HUB, PARTITIONS = "captured", 2
POINTS = (
    "capture.before_intent", "capture.after_intent", "capture.before_commit", "capture.after_commit",
    "capture.after_mark",
)  # fmt: skip
WAIT_S = 30.0
# Between two batches of a partition, 240 KB each: several files a second, and no disk full of them by --all.
PACE_S = 0.005

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]


class CaptureLoad:
    """Publishes numbered events, large ones, so that windows of 10 MiB end often; checks files after each life."""

    def __init__(self, target: str, folder: Path) -> None:
        self._target = ConnectionString.parse(target)
        self.folder = folder
        self._next = [0] * PARTITIONS
        self.accepted: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self._digests: dict[Path, str] = {}
        self._files: dict[Path, CapturedFile] = {}

    @property
    def total_accepted(self) -> int:
        """Batches of all partitions."""
        return sum(map(len, self.accepted))

    @property
    def finished_files(self) -> int:
        """Files that are there now."""
        return sum(1 for _ in self.folder.rglob("*.avro"))

    async def create_hub(self) -> None:
        connection = await Connection.open(self._target)
        try:
            await Management(connection).create_hub(
                HUB, partition_count=PARTITIONS, retention_ms=86_400_000, durability="durable",
                capture={"enabled": True, "interval_s": 900, "size_limit_bytes": 10_485_760},
            )  # fmt: skip
        finally:
            await connection.close()

    async def write(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> None:
        """Publish to all partitions for so long, or until the server is gone."""
        connection = await Connection.open(self._target)
        loop = asyncio.get_running_loop()
        limit = loop.time() + seconds

        async def write_to(partition: int) -> None:
            sender = await Sender.open(connection, f"{HUB}/Partitions/{partition}")
            waiting: set[asyncio.Future[Any]] = set()
            while loop.time() < limit and not until():
                batch = sender.batch()
                number = self._next[partition]
                self._next[partition] += 1
                while batch.try_add(b"%d:%d;" % (number, batch.count) + b"x" * 60_000):
                    pass
                outcome = asyncio.ensure_future(sender.submit(batch))
                outcome.add_done_callback(lambda done, n=number: self._note(partition, n, done))
                waiting.add(outcome)
                if len(waiting) >= 4:
                    done, waiting = await asyncio.wait(
                        waiting, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_S
                    )  # fmt: skip
                    if any(each.exception() is not None for each in done):
                        break
                await asyncio.sleep(PACE_S)
            await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), WAIT_S)

        await asyncio.gather(*(write_to(partition) for partition in range(PARTITIONS)), return_exceptions=True)
        await connection.close()

    def _note(self, partition: int, number: int, done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            self.accepted[partition].add(number)

    def captured(self, partition: int) -> list[CapturedFile]:
        """Its files, in order. Of a body each record has what stands before the first ';'.

        A file is read when it is seen first: all that the lives of a server make is too much to read after each of
        them. `changed` finds a file that has other bytes by now.
        """
        folder = self.folder / "hubweir" / HUB / str(partition)
        for path in sorted(folder.rglob("*.avro")):
            if path not in self._files:
                self._digests[path] = digest_of(path)
                file = read_file(folder, path)
                short = [{**record, "Body": record["Body"].partition(b";")[0]} for record in file.records]
                self._files[path] = replace(file, records=short)
        return [file for path, file in sorted(self._files.items()) if path.is_relative_to(folder)]

    async def check(self) -> list[str]:
        """What is wrong with the files that are there now."""
        wrong = []
        connection = await Connection.open(self._target)
        try:
            for partition in range(PARTITIONS):
                files = self.captured(partition)
                if problem := wrong_order(files):
                    wrong.append(f"partition {partition}: {problem}")
                captured = sum(len(file.records) for file in files)
                state = await Management(connection).capture_state(HUB, str(partition))
                # A file is there a moment before the mark is behind it; what is finished meanwhile only moves it on.
                limit = time.monotonic() + WAIT_S
                while state["next_sequence_number"] < captured and time.monotonic() < limit:
                    await asyncio.sleep(0.1)
                    state = await Management(connection).capture_state(HUB, str(partition))
                if state["next_sequence_number"] < captured:
                    wrong.append(f"partition {partition}: {captured} events in files, the mark is at {state}")
                bodies = [record["Body"] for file in files for record in file.records]
                if len(set(bodies)) < len(bodies):
                    wrong.append(f"partition {partition}: bodies twice")
        finally:
            await connection.close()
        return wrong

    async def check_all(self) -> list[str]:
        """The same; what became of files that were read; and which batches are lost: each one that was accepted is in
        files or, behind the end of the last file, still in the log."""
        wrong = [*await self.check(), *self.changed()]
        for partition in range(PARTITIONS):
            records = [record for file in self.captured(partition) for record in file.records]
            numbers = {int(record["Body"].partition(b":")[0]) for record in records}
            last = max(numbers, default=-1)
            missing = {number for number in self.accepted[partition] if number < last} - numbers
            if missing:
                wrong.append(f"partition {partition}: batches {sorted(missing)[:5]} were accepted and are lost")
        return wrong

    def changed(self) -> list[str]:
        """Which of the files that were read are gone, or have other bytes than they had."""
        return [
            f"{path} is gone, or has other bytes than it had"
            for path, digest in self._digests.items()
            if not path.exists() or digest_of(path) != digest
        ]


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def start_load(tmp_path: Path) -> tuple[ServerProcess, CaptureLoad, dict[str, str]]:
    folder = tmp_path / "films"
    environment = {"HUBWEIR_CAPTURE_FOLDER": str(folder)}
    server = ServerProcess(tmp_path / "data", environment=environment)
    load = CaptureLoad(server.connection_string(), folder)
    server.start()
    asyncio.run(load.create_hub())
    return server, load, environment


def test_kills_under_load_lose_and_double_nothing_in_files(
    tmp_path: Path, measure: Callable[[int], int], first_seed: int
) -> None:
    seed, chance = first_seed, random.Random(first_seed)
    server, load, _ = start_load(tmp_path)
    try:
        for _ in range(measure(50)):
            seconds = chance.uniform(0.2, 1.0)

            async def one_life(seconds: float = seconds) -> None:
                before, limit = load.total_accepted, time.monotonic() + WAIT_S
                writing = asyncio.ensure_future(load.write(WAIT_S, until=lambda: not server.is_running))
                while load.total_accepted == before and time.monotonic() < limit:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(seconds)
                await asyncio.to_thread(server.kill9)
                await writing

            asyncio.run(one_life())
            server.start()
            wrong = asyncio.run(load.check())
            assert not wrong, f"seed {seed}: {wrong[:5]}\n{server.output}"
        enough = 1 + max(PARTITIONS, load.finished_files)
        asyncio.run(load.write(WAIT_S, until=lambda: load.finished_files >= enough))
        wrong = asyncio.run(load.check_all())
        assert not wrong, f"seed {seed}: {wrong[:5]}\n{server.output}"
        assert load.finished_files > PARTITIONS, "too few files to prove anything"
    finally:
        server.kill9()


@pytest.mark.parametrize("point", POINTS)
def test_an_end_at_a_step_of_making_a_file_loses_and_doubles_nothing(
    tmp_path: Path, measure: Callable[[int], int], point: str
) -> None:
    server, load, environment = start_load(tmp_path)
    server.stop()
    try:
        for cut in range(measure(10)):
            crashing = ServerProcess(
                tmp_path / "data", ports=server.ports, program=(str(Path(__file__).with_name("crashing_server.py")),),
                environment={**environment, "CRASH_AT": point, "CRASH_COUNT": str(1 + cut % 3)},
            )  # fmt: skip
            crashing.begin()
            try:
                if crashing.becomes_ready():
                    limit = time.monotonic() + WAIT_S
                    # A send may fail, and it may end while the connection is opened.
                    while crashing.is_running and time.monotonic() < limit:
                        with suppress(OSError, HubweirError):
                            asyncio.run(load.write(WAIT_S, until=lambda: not crashing.is_running))  # noqa: B023
                assert not crashing.is_running, f"{point} was not reached"
            finally:
                crashing.kill9()
            server.start()
            asyncio.run(load.write(0.3))
            wrong = asyncio.run(load.check_all())
            assert not wrong, f"{point}: {wrong[:5]}\n{server.output}"
            server.stop()
    finally:
        server.kill9()


# The control arm: files that are wrong are found.


def write_file(path: Path, numbers: range) -> None:
    fields = [{"name": "SequenceNumber", "type": "long"}, {"name": "Body", "type": "bytes"}]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        records = [{"SequenceNumber": number, "Body": b"%d:0;" % number} for number in numbers]
        fastavro.writer(file, {"type": "record", "name": "EventData", "fields": fields}, records, sync_marker=bytes(16))


@pytest.mark.parametrize("second", [range(4, 9), range(6, 9)], ids=["twice", "left out"])
def test_control_files_with_an_event_twice_or_left_out_are_found(tmp_path: Path, second: range) -> None:
    write_file(tmp_path / "hub/0/1.avro", range(5))
    write_file(tmp_path / "hub/0/2.avro", range(5, 9))
    assert not wrong_order(captured_files(tmp_path))
    write_file(tmp_path / "hub/0/2.avro", second)
    assert wrong_order(captured_files(tmp_path))


def test_control_a_file_that_is_made_anew_or_removed_is_found(tmp_path: Path) -> None:
    path = tmp_path / "hubweir" / HUB / "0" / "1.avro"
    write_file(path, range(5))
    load = CaptureLoad("Endpoint=sb://127.0.0.1;SharedAccessKeyName=key;SharedAccessKey=a2V5", tmp_path)
    assert [record["Body"] for file in load.captured(0) for record in file.records] == [
        b"%d:0" % each for each in range(5)
    ]
    write_file(path, range(5))
    assert not load.changed()
    write_file(path, range(6))
    assert len(load.changed()) == 1
    path.unlink()
    assert len(load.changed()) == 1

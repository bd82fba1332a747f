"""A sink that is killed in the middle of its writes, again and again: every row stored once, in order; two controls.

The driver copies one hub into another in batches of known size. It is killed, with its JVM and its workers, when the
target has some rows of a batch that is not committed and not all of them: a write was under way. HUBWEIR_SPARK_KILLS
says how many such kills there are (`./run campaign spark`: 20).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.receiver import ReceiverOptions
from hubweir.testing.running_namespace import RunningNamespace
from tests.spark.live_hub import Hub, until

SCRIPT = Path(__file__).with_name("sink_driver.py")
ROWS_A_BATCH = 20_000
BATCHES_A_LIFE = 4
LIFE_S = 240.0


@pytest.fixture
def target(namespace: RunningNamespace, hub: Hub) -> Iterator[Hub]:
    name = f"{hub.name}-copy"
    namespace.create_event_hub(name, partition_count=2)
    client = BlockingEventHubClient.from_connection_string(namespace.connection_string(), name)
    yield Hub(namespace, name, client)
    client.close()


class Killing:
    """Copies source to target in drivers that are killed."""

    def __init__(self, source: Hub, target: Hub, folder: Path, exactly_once: str, *more: str) -> None:
        self.hub = source
        self.target = target
        self.folder = folder
        self.log = folder / "driver.log"
        self._arguments = [source.namespace.connection_string(), source.name, target.name, str(folder), exactly_once]
        self._arguments += [str(ROWS_A_BATCH), *more]
        self._random = Random(os.getpid())

    @contextmanager
    def life(self) -> Iterator[subprocess.Popen[bytes]]:
        """A driver with its JVM and workers in a process group of its own, which is killed at the end."""
        source = str(Path(__file__).parents[2] / "src")
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT), *self._arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": source},
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # its JVM has ended by itself, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def rows(self) -> int:
        """How many are to be copied."""
        return sum(self.hub.high(partition_id) for partition_id in "01")

    def stored(self) -> int:
        return sum(self.target.high(partition_id) for partition_id in "01")

    def uncommitted(self) -> int | None:
        """The batch that is being written."""
        planned, committed = (
            {int(path.name) for path in (self.folder / "checkpoint" / name).glob("[0-9]*")}
            for name in ("offsets", "commits")
        )
        return max(planned - committed, default=None)

    def kill_in_mid_batch(self) -> None:
        """One life that ends so; tried again when the write was over before the kill came."""
        for _ in range(5):
            if self._killed_in_mid_batch():
                return
        raise AssertionError("no kill came in the middle of a write")

    def _killed_in_mid_batch(self) -> bool:
        before = self.stored()
        # A life whose kill came too late has stored whole batches: the next one needs others to be killed in.
        if (missing := BATCHES_A_LIFE - (self.rows() - before) // ROWS_A_BATCH) > 0:
            fill(self.hub, missing)
        wanted = before + self._random.randrange(2_000, 14_000)
        with self.life() as driver:
            until(
                lambda: driver.poll() is not None or (self.stored() >= wanted and self._is_in_mid_batch(before)),
                "a write under way",
                seconds=LIFE_S,
            )
            assert driver.poll() is None, self.log.read_text()[-3_000:]
        time.sleep(0.2)  # what was in the sockets
        return self._is_in_mid_batch(before)

    def finish(self) -> int:
        """One life that is left alone; its status."""
        with self.life() as driver:
            return driver.wait(LIFE_S)

    def bodies(self, hub: Hub, partition_id: str) -> list[bytes]:
        """All bodies of a partition in order."""
        count, found = hub.high(partition_id), []
        receiver = hub.client.receiver(partition_id, ReceiverOptions(limit=count))
        while len(found) < count:
            run = receiver.receive(max_wait_s=10)
            assert run is not None, (len(found), count)
            found += [bytes(body) for body in run.bodies()]
        receiver.close()
        return found

    def _is_in_mid_batch(self, before: int) -> bool:
        batch, stored = self.uncommitted(), self.stored()
        # Rows that are there twice only make this later: some of the batch are stored, and not all of them.
        return batch is not None and before < stored and 0 < (stored % ROWS_A_BATCH) < ROWS_A_BATCH


def kills(measure: Callable[[int], int]) -> int:
    return int(os.environ.get("HUBWEIR_SPARK_KILLS", "0")) or measure(5)


def fill(hub: Hub, batches: int) -> None:
    """So many more, of rows that all differ."""
    for partition_id in "01":
        hub.send(partition_id, batches * ROWS_A_BATCH // 2, start=hub.high(partition_id))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_every_row_is_stored_once_over_kills_in_mid_write(
    hub: Hub, target: Hub, tmp_path: Path, measure: Callable[[int], int]
) -> None:
    killing = Killing(hub, target, tmp_path, "require")
    for _ in range(kills(measure)):
        killing.kill_in_mid_batch()
    assert killing.finish() == 0, killing.log.read_text()[-3_000:]
    for partition_id in "01":
        assert killing.bodies(target, partition_id) == killing.bodies(hub, partition_id)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_runs_on_one_checkpoint_end_with_an_error_for_one_and_double_nothing(
    hub: Hub, target: Hub, tmp_path: Path
) -> None:
    """The second has its session before the first begins, so that it comes in the middle of the first one's work."""
    fill(hub, 12)
    killing = Killing(hub, target, tmp_path, "require")
    with Killing(hub, target, tmp_path, "require", "when-told").life() as second:
        until((tmp_path / "ready").exists, "the second session", seconds=LIFE_S)
        with killing.life() as first:
            until(lambda: first.poll() is not None or killing.stored() > 2_000, "a write under way", seconds=LIFE_S)
            (tmp_path / "go").touch()
            ended = [each.wait(LIFE_S) for each in (first, second)]
    assert any(ended), "the first was over before the second began"
    told = killing.log.read_text()
    assert any(
        text in told
        for text in (
            "took over, or another run of the query on this checkpoint",
            "has rows of a later batch",
            "CONCURRENT_STREAM_LOG_UPDATE",
        )
    ), told[-3_000:]
    assert killing.finish() == 0, killing.log.read_text()[-3_000:]
    for partition_id in "01":
        assert killing.bodies(target, partition_id) == killing.bodies(hub, partition_id)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_without_numbers_the_same_kill_stores_rows_twice(hub: Hub, target: Hub, tmp_path: Path) -> None:
    killing = Killing(hub, target, tmp_path, "off")
    killing.kill_in_mid_batch()
    assert killing.finish() == 0, killing.log.read_text()[-3_000:]
    sent = [body for partition_id in "01" for body in killing.bodies(hub, partition_id)]
    copied = [body for partition_id in "01" for body in killing.bodies(target, partition_id)]
    assert len(copied) > len(sent) and set(copied) == set(sent)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_repeat_that_makes_other_rows_is_stopped_before_it_stores_any(hub: Hub, target: Hub, tmp_path: Path) -> None:
    fill(hub, 2)
    killing = Killing(hub, target, tmp_path, "require", "other-rows")
    killing.kill_in_mid_batch()
    stored = {partition_id: target.high(partition_id) for partition_id in "01" if target.high(partition_id)}
    assert stored and killing.finish() != 0
    assert "was repeated and made other rows" in killing.log.read_text()
    # Of the tasks that had begun; one a partition.
    assert stored == {partition_id: target.high(partition_id) for partition_id in stored}

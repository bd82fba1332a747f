"""T2, T9, T4: random histories of one log with crashes, torn writes and failing syncs; no promise may break.

Every planted defect below must be found by the same histories: else their silence means nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from log_world import LogWorld, Violation, play

from hubweir.env import SyncFailed
from hubweir.kernels import which
from hubweir.messaging_store import failed_sync, open_log, recovery
from hubweir.messaging_store.failed_sync import Repair
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.segment import ActiveSegment
from hubweir.messaging_store.segment_log import SegmentLog
from hubweir.testing.memory_files import MemoryFile, MemoryFiles

# Found by these seeds once, and mended.
PAST_SEEDS = [35, 39, 47, 92, 275, 366, 1011]
CONTROL_SEEDS = 1500


def _play(seed: int) -> str:
    try:
        return play(seed)
    except BaseException as error:
        error.add_note(f"seed {seed}: HUBWEIR_FIRST_SEED={seed} plays it again")
        raise


@pytest.mark.timeout(1800)
def test_no_history_breaks_a_promise(first_seed: int, measure: Callable[[int], int]) -> None:
    count = measure(20_000)
    if which() == "pure":
        count //= 10
    for seed in [*PAST_SEEDS, *range(first_seed, first_seed + count)]:
        _play(seed)


def test_the_same_seed_gives_the_same_history_in_any_process(first_seed: int, measure: Callable[[int], int]) -> None:
    seeds = list(range(first_seed, first_seed + measure(20_000), 100))
    here = [_play(seed) for seed in seeds]
    code = f"import log_world\nfor seed in {seeds}: print(log_world.play(seed))"
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    for hash_seed in ("1", "4711"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
        there = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert there.stdout.split() == here


def accept_before_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryFile, "write_and_sync", MemoryFile.write)


def ignore_sync_errors(patch: pytest.MonkeyPatch) -> None:
    sync = MemoryFile.sync

    def deaf(self: MemoryFile) -> None:
        try:
            sync(self)
        except SyncFailed:
            return

    patch.setattr(MemoryFile, "sync", deaf)


def retry_failed_syncs(patch: pytest.MonkeyPatch) -> None:
    sync = MemoryFile.sync

    def stubborn(self: MemoryFile) -> None:
        try:
            sync(self)
        except SyncFailed:
            sync(self)

    patch.setattr(MemoryFile, "sync", stubborn)


def leave_folders_unsynced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryFiles, "sync_folder", lambda self, path: None)


def roll_without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActiveSegment, "finish", lambda self: None)


def read_above_the_watermark(patch: pytest.MonkeyPatch) -> None:
    read = SegmentLog.read

    def eager(self, index, *, max_bytes, on_done):  # type: ignore[no-untyped-def]
        for entry in self._commit._queue._entries:
            if entry.before.index == index < entry.end.index:
                return Run(bytes(entry.run), index, entry.end.index)
        return read(self, index, max_bytes=max_bytes, on_done=on_done)

    patch.setattr(SegmentLog, "read", eager)


def use_numbers_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(open_log, "SKIPPED_NUMBERS", 0)


def trust_the_page_cache(patch: pytest.MonkeyPatch) -> None:
    def trusting(files, folder, log_id, *, upto=None):  # type: ignore[no-untyped-def]
        found = recovery.recover(files, folder, log_id, upto=upto)
        found.vouched = found.end
        return found

    patch.setattr(open_log, "recover", trusting)


def keep_half_chains(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "FLAG_CONTINUES", 0)


def refuse_before_the_new_segment(patch: pytest.MonkeyPatch) -> None:
    failed = Repair.failed

    def hasty(self, error, entries):  # type: ignore[no-untyped-def]
        failed_sync._refuse(self._state, entries, known=True)
        failed(self, error, [])

    patch.setattr(Repair, "failed", hasty)


def supersede_nothing(patch: pytest.MonkeyPatch) -> None:
    """Segments of a failed sync's rest come back: the newest by first index counts, whatever its epoch."""

    def forgetful(self, error, entries):  # type: ignore[no-untyped-def]
        waiting = entries + self._commit.drain_for_failure()
        failed_sync._refuse(self._state, waiting, known=True)
        self._state.appended = self._state.visible
        self._commit.resume()

    patch.setattr(Repair, "failed", forgetful)


DEFECTS = [
    accept_before_sync,
    ignore_sync_errors,
    retry_failed_syncs,
    leave_folders_unsynced,
    roll_without_sync,
    read_above_the_watermark,
    use_numbers_again,
    trust_the_page_cache,
    keep_half_chains,
    refuse_before_the_new_segment,
    supersede_nothing,
]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    for seed in range(CONTROL_SEEDS):
        try:
            LogWorld(seed).run()
        except Violation:
            return
    pytest.fail(f"{defect.__name__} was not found in {CONTROL_SEEDS} histories")

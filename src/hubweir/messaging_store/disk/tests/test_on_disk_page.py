"""docs/on_disk.md shows the tables of the code, and the figures that operators are told."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from hubweir.kernels import stored_batch
from hubweir.limits import MIB
from hubweir.messaging_store import control_batch
from hubweir.messaging_store.disk import layout, notes, segment
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.open_log import SKIPPED_NUMBERS
from hubweir.messaging_store.segment_engine.reserve import RESERVE_BYTES
from hubweir.messaging_store.segment_engine.segment_log import RESUME_BYTES

PAGE = (Path(__file__).resolve().parents[5] / "docs" / "on_disk.md").read_text()


@pytest.mark.parametrize("module", [stored_batch, segment, control_batch, notes])
def test_every_row_of_a_format_is_on_the_page(module: ModuleType) -> None:
    rows = [line for line in (module.__doc__ or "").splitlines() if line.startswith("|")]
    assert len(rows) >= 4
    assert [row for row in rows if row not in PAGE.splitlines()] == []


def test_the_figures_are_those_of_the_code() -> None:
    settings = LogSettings()
    assert f"skips {SKIPPED_NUMBERS:,} numbers" in PAGE
    assert f"{settings.relaxed_sync_ms} ms or {settings.relaxed_sync_bytes // MIB} MiB" in PAGE
    assert f"ends at {settings.segment_bytes // MIB} MiB" in PAGE
    assert (
        f"`RESERVE` is {RESERVE_BYTES // MIB} MiB" in PAGE and f"when {2 * RESERVE_BYTES // MIB} MiB are free" in PAGE
    )
    assert f"{RESUME_BYTES // 1024} KiB more than they need" in PAGE
    steps = f"{segment.FIRST_STEP_BYTES // MIB} MiB to\n{segment.STEP_LIMIT_BYTES // MIB} MiB"
    assert steps in PAGE and f"header of {segment.SEGMENT_HEADER_SIZE} bytes" in PAGE
    assert f"`0x{stored_batch.CRC_SEED:x}`" in PAGE


def test_the_names_are_those_of_the_code() -> None:
    for name in (
        layout.FORMAT_NAME,
        layout.LOCK_NAME,
        layout.EPOCH_NAME,
        layout.RESERVE_NAME,
        layout.CLOCK_NAME,
        layout.PREVIOUS_SNAPSHOT_NAME,
    ):
        assert name in PAGE
    for suffix in (layout.OFFSETS_SUFFIX, layout.TIMES_SUFFIX, layout.UNFINISHED_SUFFIX):
        assert suffix in PAGE
    assert layout.SegmentName(1, 0).file_name in PAGE

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubweir.messaging_store.disk.newest_segment import load_newest
from hubweir.messaging_store.disk.segment import ActiveSegment, create
from hubweir.messaging_store.segment_engine import log_state
from hubweir.messaging_store.segment_engine.log_state import LogSettings

ENGINE = Path(log_state.__file__).parent
# The parts of a log's state that change, and the modules that write them beside log_segments.py and log_health.py.
WRITERS: dict[str, tuple[str, ...]] = {
    "appended": ("group_commit", "open_log"),
    "visible": ("group_commit", "open_log"),
    "synced": ("group_commit", "open_log"),
    "writer_epoch": ("failed_sync",),
    "on_fenced": ("segment_log", "messaging_store"),  # whoever is told sets it
    **dict.fromkeys(("segments", "kept", "superseded", "active", "active_segment", "first_index", "first_offset"), ()),
    **dict.fromkeys(("health", "offline", "fenced", "is_full", "is_closing"), ()),
}


def parts_written(source: str) -> Iterator[str]:
    """The parts of another object's state that a module assigns, or changes as lists."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in WRITERS:
            is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if not is_own:
                yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed = node.func.value
            if isinstance(changed, ast.Attribute) and changed.attr in ("kept", "superseded"):
                yield changed.attr


def test_each_part_of_a_logs_state_has_one_writer() -> None:
    for path in ENGINE.glob("*.py"):
        if path.stem not in ("log_state", "log_segments", "log_health"):
            others = [part for part in parts_written(path.read_text()) if path.stem not in WRITERS[part]]
            assert not others, f"{path.name} writes {others}, which one other module writes"


@pytest.mark.parametrize(
    ("planted", "part"),
    [
        ("state.synced = end", "synced"),
        ("old, self._state.segments.active = active, None", "active"),
        ("state.segments.kept.pop()", "kept"),
        ("log._state.health.offline = None", "offline"),
    ],
)
def test_control_a_second_writer_is_found(planted: str, part: str) -> None:
    assert list(parts_written(planted)) == [part]


def test_the_tail_never_reaches_beyond_what_is_visible(bench) -> None:
    bench.append(b"a")
    bench.append(b"b", wait_ms=0)
    state = bench.log._state
    assert (state.synced.index, state.visible.index, state.appended.index) == (1, 1, 2)


def test_a_segment_at_the_same_index_supersedes_the_whole_old_one(bench) -> None:
    bench.append(b"a")
    state = bench.log._state
    header = state.new_header(type(state.visible)(0, 0, -1, -1, -1))
    state.segments.started(create(bench.env.files, state.folder, replace(header, writer_epoch=9)))
    assert [segment.header.writer_epoch for segment in state.segments.kept] == [9]
    assert state.segments.superseded[0] == "00000000000000000000-00000001.log"


def test_the_defaults_are_the_documented_ones() -> None:
    settings = LogSettings()
    assert settings.segment_bytes == 256 << 20 and settings.tail_bytes == 4 << 20
    assert settings.relaxed_sync_ms == 50 and settings.relaxed_sync_bytes == 1 << 20
    assert settings.relaxed_unsynced_bytes == 16 << 20 and settings.idle_mark_ms < 1000


def test_a_segment_that_cannot_be_remembered_is_closed_and_its_failure_told(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made anew until it can be: each try would keep a descriptor for good."""

    def fails(*given: object) -> None:
        raise OSError(5, "planted")

    state = bench.log._state
    made = list[ActiveSegment]()

    def keep(*given: Any) -> ActiveSegment:
        made.append(create(*given))
        return made[-1]

    monkeypatch.setattr(log_state, "create", keep)
    monkeypatch.setattr(log_state, "save_newest", fails)
    with pytest.raises(OSError, match="planted"):
        state.create_segment(state.new_header(state.visible), [], index=0, offset=0)
    assert made[0].file not in bench.env.files.open_files


def test_a_new_segment_is_remembered_with_room_for_what_goes_into_it_next(bench) -> None:
    """A run may be larger than a segment should be: lost with it, its numbers would be given again. (Promise P4)"""
    state, large = bench.log._state, 10 * bench.settings.segment_bytes
    state.create_segment(state.new_header(state.visible), [], index=3, offset=70, size=large).file.close()
    newest = load_newest(bench.env.files, "store-0", state.log_id)
    assert newest is not None
    assert newest.offset_limit == 70 + bench.settings.segment_bytes + large and newest.index_limit > 3

from __future__ import annotations

from dataclasses import replace

from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.segment import create


def test_the_tail_never_reaches_beyond_what_is_visible(bench) -> None:
    bench.append(b"a")
    bench.append(b"b", wait_ms=0)
    state = bench.log._state
    assert (state.synced.index, state.visible.index, state.appended.index) == (1, 1, 2)


def test_an_alarm_is_raised_once(bench) -> None:
    bench.log._state.alarm("fire")
    bench.log._state.alarm("fire")
    assert bench.log.alarms == ["fire"] and bench.counters.get("log.alarms") == 1


def test_a_segment_at_the_same_index_supersedes_the_whole_old_one(bench) -> None:
    bench.append(b"a")
    state = bench.log._state
    header = state.new_header(type(state.visible)(0, 0, -1, -1, -1), 0)
    state.started(create(bench.env.files, state.folder, replace(header, writer_epoch=9)))
    assert [segment.header.writer_epoch for segment in state.segments] == [9]
    assert state.superseded[0] == "00000000000000000000-00000001.log"


def test_the_defaults_are_the_documented_ones() -> None:
    settings = LogSettings()
    assert settings.segment_bytes == 256 << 20 and settings.tail_bytes == 4 << 20
    assert settings.relaxed_sync_ms == 50 and settings.relaxed_sync_bytes == 1 << 20
    assert settings.relaxed_unsynced_bytes == 16 << 20 and settings.idle_mark_ms < 1000

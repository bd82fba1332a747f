from __future__ import annotations

import pytest

from hubweir.errors import CorruptStore
from hubweir.messaging_store import recovery
from hubweir.messaging_store.batch_scan import scan
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.open_log import SKIPPED_NUMBERS
from hubweir.messaging_store.recovery import recover
from hubweir.testing.memory_files import MemoryFiles

FOLDER = "store-0/logs/" + "ab" * 16


def newest(bench) -> bytearray:
    data: bytearray = bench.env.files.bytes_of(f"{FOLDER}/{bench.segments()[-1]}")
    return data


def test_an_empty_folder_is_an_empty_log() -> None:
    found = recover(MemoryFiles(), "nowhere", "ab" * 16)
    assert (found.end.index, found.nonce, found.clean, found.segments) == (0, None, True, [])


def test_a_kill_keeps_what_was_written_and_makes_it_durable(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    bench.reopen()
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"a", 1: b"b"} and not bench.store.alarms


def test_a_torn_tail_is_dropped_without_a_word(bench) -> None:
    bench.append(b"a")
    bench.append(b"torn" * 10)
    newest(bench)[-3] ^= 1
    bench.reopen()
    assert bench.everything() == {0: b"a"} and not bench.store.alarms
    assert bench.append(b"new").first_index == 1


def test_a_tail_chain_goes_back_to_its_first_batch(bench, make_events) -> None:
    bench.append(b"a")
    chain = make_events([b"one"], [b"two"], [b"three" * 10])
    bench.log.append(chain, now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
    bench.env.run_for(50)
    newest(bench)[-3] ^= 1
    bench.reopen()
    assert bench.everything() == {0: b"a"}


def test_damage_below_d_is_quarantined_and_the_rest_served(bench) -> None:
    for number in range(4):
        bench.append(b"%d" % number * 30)
    bench.env.run_for(2000)
    data = newest(bench)
    data[data.index(b"1" * 30)] ^= 1
    bench.reopen()
    assert bench.log.bounds.next_index == 4
    assert [isinstance(bench.read(index, max_bytes=1), Refused) for index in range(4)] == [False, True, False, False]
    assert isinstance(bench.read(1).error, CorruptStore)
    assert len(bench.store.alarms) == 1 and bench.counters.get("log.corrupt_records") == 1
    with pytest.raises(CorruptStore):
        list(bench.log.replay())
    assert [run.first_index for run in bench.log.replay(2)] == [2]


def test_damage_in_an_older_segment_is_found_by_the_read(bench) -> None:
    bench.append(b"old" * 30)
    bench.append(b"old too" * 30)
    bench.reopen(close=True)
    bench.append(b"new")
    data = bench.env.files.bytes_of(f"{FOLDER}/{bench.segments()[0]}")
    data[data.index(b"old" * 30)] ^= 1
    bench.reopen()
    assert not bench.store.alarms
    assert isinstance(bench.read(0), Refused) and len(bench.store.alarms) == 1
    assert bench.read(1, max_bytes=1).first_index == 1


def test_nothing_is_ever_written_into_an_old_file(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    old = bench.segments()[0]
    before = bytes(bench.env.files.bytes_of(f"{FOLDER}/{old}"))
    bench.reopen()
    bench.append(b"c")
    bench.reopen(close=True)
    assert bytes(bench.env.files.bytes_of(f"{FOLDER}/{old}")) == before


def test_a_relaxed_log_skips_numbers_after_an_unclean_stop_only(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.reopen(close=True)
    assert bench.append(b"b").first_index == 1
    bench.reopen()
    assert bench.append(b"c").first_index == 2 + SKIPPED_NUMBERS
    assert bench.everything() == {0: b"a", 1: b"b", 2 + SKIPPED_NUMBERS: b"c"}


def test_unfinished_files_are_removed(bench) -> None:
    bench.append(b"a")
    bench.env.files.open(f"{FOLDER}/00000000000000000009-00000009.log.new", create=True).write(0, [b"half"])
    bench.reopen()
    assert not any(path.endswith(".new") for path in bench.env.files.paths())


def test_the_scan_starts_at_the_last_saved_entry(make_bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(settings=LogSettings())
    for number in range(40):
        bench.append(b"%d" % number * 4000, wait_ms=5)
    starts: list[int] = []

    def noted(file, start, *rest):  # type: ignore[no-untyped-def]
        starts.append(start.position)
        return scan(file, start, *rest)

    monkeypatch.setattr(recovery, "scan", noted)
    bench.reopen(close=True)
    assert len(starts) == 1 and starts[0] > 100_000
    assert bench.log.bounds.next_index == 40 and len(bench.everything()) == 40

"""The log under a test's control: what is visible when, who is answered, and what a crash keeps."""

from __future__ import annotations

import pytest

from hubweir.messaging_store.log import Appended, Refused, Run
from hubweir.messaging_store.operations import operations_of, pack_operations
from hubweir.testing.manual_log import ManualLog


class Bench:
    """A log, and the answers of its appends in the order in which they came."""

    def __init__(self) -> None:
        self.log = ManualLog("ab" * 16)
        self.answers: list[tuple[bytes, Appended | Refused]] = []

    def append(self, *records: bytes) -> Appended:
        run = pack_operations(list(records))
        return self.log.append(run, now_ms=5, on_done=lambda answer: self.answers.append((records[0], answer)))


def shown(log: ManualLog) -> list[bytes]:
    runs: list[Run] = []
    log.replay(0, runs.append, lambda replayed: None)
    return [bytes(record) for run in runs for _, record in operations_of(run.data)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_sync_shows_and_answers_the_oldest_append_alone(bench: Bench) -> None:
    appended = bench.append(b"a", b"b")
    bench.append(b"c")
    assert (shown(bench.log), bench.answers, bench.log.in_flight) == ([], [], 2)
    bench.log.sync()
    assert shown(bench.log) == [b"a", b"b"]
    assert bench.answers == [(b"a", appended)]
    assert (bench.log.bounds.next_index, bench.log.in_flight) == (2, 1)


def test_a_failed_sync_refuses_all_in_order_and_the_next_append_takes_their_place(bench: Bench) -> None:
    bench.append(b"a")
    bench.log.sync()
    second = bench.append(b"b")
    bench.append(b"c")
    bench.log.fail()
    assert [record for record, answer in bench.answers if isinstance(answer, Refused)] == [b"b", b"c"]
    assert bench.append(b"d").first_index == second.first_index
    bench.log.sync()
    assert shown(bench.log) == [b"a", b"d"]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_crash_keeps_what_is_synced_and_so_much_of_the_tail(bench: Bench, kept: int) -> None:
    for record in (b"a", b"b", b"c"):
        bench.append(record)
    bench.log.sync()
    log = bench.log.restarted(kept)
    assert shown(log) == [b"a", b"b", b"c"][: 1 + kept]
    assert log.lease.writer_epoch == bench.log.lease.writer_epoch + 1
    assert log.in_flight == 0
    assert len(bench.answers) == 1
    appended = log.append(pack_operations([b"d"]), now_ms=1, on_done=lambda answer: None)
    assert (appended.first_index, appended.enqueued_time_ms) == (1 + kept, 5)


def test_what_is_synced_is_read_and_what_is_not_is_not(bench: Bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    bench.log.sync()
    run = bench.log.read(0, max_bytes=1 << 20, on_done=lambda answer: None)
    assert isinstance(run, Run)
    assert (run.first_index, run.next_index) == (0, 1)
    assert not bench.log.read(1, max_bytes=1, on_done=lambda answer: None).data  # type: ignore[union-attr]

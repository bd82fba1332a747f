from __future__ import annotations

import pytest

from hubweir.errors import CorruptStore, LogLost, NewerFormat, OldFormat, StoreError, StoreLocked
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import Bench, events
from hubweir.testing.answers import made_log, opened_log
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv


def test_a_store_has_one_owner(bench) -> None:
    with pytest.raises(StoreLocked):
        MessagingStore.open(bench.env, "store-0")
    closed: list[bool] = []
    bench.store.close(lambda: closed.append(True))
    bench.env.run()
    assert closed == [True]
    MessagingStore.open(bench.env, "store-0")


@pytest.mark.parametrize("version", [0, 1, 3, 30])
def test_another_format_is_refused_and_left_alone(bench, version: int) -> None:
    bench.env.files.set_bytes("store-0/FORMAT", b"hubweir store %d\n" % version)
    bench.env.crash()
    env = bench.env.restart()
    before = {path: bytes(env.files.bytes_of(path)) for path in env.files.paths()}
    with pytest.raises(NewerFormat if version > 2 else OldFormat, match="use the version that wrote it"):
        MessagingStore.open(env, "store-0")
    assert {path: bytes(env.files.bytes_of(path)) for path in env.files.paths()} == before
    assert not env.files.locks


@pytest.mark.parametrize("text", [b"", b"something else", b"hubweir store x\n", "hubweir store ²\n".encode()])
def test_a_damaged_format_is_corruption(bench, text: bytes) -> None:
    bench.env.files.set_bytes("store-0/FORMAT", text)
    with pytest.raises(CorruptStore):
        bench.reopen()


def test_logs_are_created_listed_and_deleted(bench) -> None:
    other = "cd" * 16
    assert made_log(bench.env, bench.store, other) is made_log(bench.env, bench.store, other)
    assert bench.store.log_ids() == ["ab" * 16, other]
    with pytest.raises(StoreError, match="open"):
        bench.store.delete_log(other, lambda result: None)
    bench.store.close_log(other, lambda: None)
    bench.env.run()
    deleted: list[None] = []
    for _ in range(2):
        bench.store.delete_log(other, lambda result: deleted.append(result.value()))
        bench.env.run()
    assert deleted == [None, None]
    assert bench.store.log_ids() == ["ab" * 16]
    with pytest.raises(LogLost):
        opened_log(bench.env, bench.store, other)
    assert bench.env.files.list("store-0/newest") == ["ab" * 16]


@pytest.mark.parametrize("name", ["", "..", "orders", "AB" * 16])
def test_a_log_is_never_named_by_a_client(bench, name: str) -> None:
    with pytest.raises(StoreError):
        made_log(bench.env, bench.store, name)


def test_a_closed_log_opens_again(bench) -> None:
    bench.append(b"a")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    bench.log = opened_log(bench.env, bench.store, bench.log.log_id)
    assert bench.everything() == {0: b"a"} and bench.append(b"b").first_index == 1


def test_an_open_that_fails_gives_the_lock_back() -> None:
    env = SimulatedEnv(1)
    env.files.plan(Fault.EIO, 8, forever=True)
    with pytest.raises(OSError):
        MessagingStore.open(env, "store-0")
    env.files.heal()
    assert MessagingStore.open(env, "store-0").writer_epoch >= 1


def test_a_store_keeps_its_folder_until_a_log_that_was_closing_is_closed(bench) -> None:
    bench.append(b"a", wait_ms=0)
    ended: list[str] = []
    bench.store.close_log(bench.log.log_id, lambda: ended.append("log"))
    bench.env.run_for(1)
    bench.store.close(lambda: ended.append("store"))
    while not ended:
        assert bench.env.files.locks == {"store-0"}
        bench.env.run_for(1)
    bench.env.run()
    assert ended == ["log", "store"] and not bench.env.files.locks
    bench.reopen()
    assert bench.everything() == {0: b"a"}


def test_a_log_is_deleted_away_from_the_loop_and_the_store_waits_for_it(bench) -> None:
    bench.append(b"a")
    ended: list[str] = []

    def closed() -> None:
        calls = bench.env.files.calls
        bench.store.delete_log(bench.log.log_id, lambda result: ended.append("deleted"))
        assert bench.env.files.calls == calls, "files were removed on the loop"

    bench.store.close_log(bench.log.log_id, closed)
    bench.store.close(lambda: ended.append("closed"))
    while not ended:
        assert bench.env.files.locks == {"store-0"}
        bench.env.run_for(1)
    bench.env.run()
    assert ended == ["deleted", "closed"] and not bench.env.files.locks


def test_a_log_that_is_being_deleted_cannot_be_made_or_deleted(bench) -> None:
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    bench.store.delete_log(bench.log.log_id, lambda result: None)
    assert bench.store.log_ids() == []
    with pytest.raises(StoreError, match="being deleted"):
        made_log(bench.env, bench.store, bench.log.log_id)
    with pytest.raises(StoreError, match="being deleted"):
        bench.store.delete_log(bench.log.log_id, lambda result: None)


@pytest.mark.parametrize("sync_fails", [False, True], ids=["at once", "at the second try"])
def test_a_deleted_log_stays_away_after_a_power_cut(make_bench, sync_fails: bool) -> None:
    for seed in range(12):
        bench = make_bench(env=SimulatedEnv(seed))
        bench.append(b"a")
        bench.store.close_log(bench.log.log_id, lambda: None)
        bench.env.run()
        results: list[object] = []
        if sync_fails:
            bench.env.files.plan(Fault.SYNC_EIO)
            bench.store.delete_log(bench.log.log_id, lambda result: None)
            bench.env.run()
        bench.store.delete_log(bench.log.log_id, results.append)
        bench.env.run()
        assert results[0].value() is None
        bench.env.crash(power_cut=True)
        assert MessagingStore.open(bench.env.restart(), "store-0").log_ids() == []


def test_a_log_that_was_created_is_there_after_a_power_cut() -> None:
    for seed in range(12):
        env = SimulatedEnv(seed)
        store = MessagingStore.open(env, "store-0")
        log_id = made_log(env, store, "cd" * 16).log_id
        env.crash(power_cut=True)
        assert MessagingStore.open(env.restart(), "store-0").log_ids() == [log_id]


def test_a_store_that_was_opened_is_there_after_a_power_cut() -> None:
    for seed in range(12):
        env = SimulatedEnv(seed)
        epoch = MessagingStore.open(env, "store-0").writer_epoch
        env.crash(power_cut=True)
        assert env.files.exists("store-0/logs")
        assert MessagingStore.open(env.restart(), "store-0").writer_epoch == epoch + 1


def test_a_delete_that_fails_says_so_and_can_be_tried_again(bench) -> None:
    bench.append(b"a")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    results: list[object] = []
    bench.env.files.plan(Fault.EIO)
    for _ in range(2):
        bench.store.delete_log(bench.log.log_id, results.append)
        bench.env.run()
    with pytest.raises(OSError):
        results[0].value()
    assert results[1].value() is None and bench.store.log_ids() == []


def test_unfinished_files_go_at_the_first_opening_of_a_process_only(bench) -> None:
    path = f"{bench.folder}/capture.new"
    bench.env.files.open(path, create=True)
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    opened_log(bench.env, bench.store, bench.log.log_id)
    assert path in bench.env.files.paths()
    bench.reopen()
    assert path not in bench.env.files.paths()


@pytest.mark.parametrize("durability", Durability)
def test_a_store_that_was_taken_over_closes_though_all_its_logs_were_writing(durability: Durability) -> None:
    """Each log's last round finds the new owner by itself, while the first that did has fenced all of them."""
    bench = Bench(durability=durability)
    logs = [
        bench.log,
        *(made_log(bench.env, bench.store, f"{number:032x}", durability=durability) for number in range(1, 6)),
    ]
    for log in logs:
        log.append(events([b"before"]), now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
    bench.env.run_for(2_000)
    bench.take_over()
    for log in logs:
        log.append(events([b"after"]), now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
    closed: list[bool] = []
    bench.store.close(lambda: closed.append(True))
    bench.env.run_for(5_000)
    assert closed == [True]

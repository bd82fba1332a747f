"""What the file adds to test_checkpoint_store.py: other processes, sudden ends, newer formats."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hubweir.client.partition_context import GroupName
from hubweir.client.sqlite_checkpoint_store import FORMAT, BlockingSqliteCheckpointStore
from hubweir.errors import NewerFormat

NAME = GroupName("namespace", "hub", "group")

CLAIM_ALL = """
import sys
from hubweir.client.partition_context import GroupName
from hubweir.client.sqlite_checkpoint_store import BlockingSqliteCheckpointStore
sys.stdin.readline()
with BlockingSqliteCheckpointStore(sys.argv[1]) as store:
    name = GroupName("namespace", "hub", "group")
    won = [r["partition_id"] for n in range(200)
           for r in store.claim_ownership([name.record(str(n), owner_id=sys.argv[2])])]
    print(*won)
"""

MARK_FOREVER = """
import sys
from hubweir.client.partition_context import GroupName
from hubweir.client.sqlite_checkpoint_store import BlockingSqliteCheckpointStore
store = BlockingSqliteCheckpointStore(sys.argv[1])
name = GroupName("namespace", "hub", "group")
number = 0
while True:
    number += 1
    store.update_checkpoint(name.record("0", offset=str(number), sequence_number=number))
    print(number, flush=True)
"""


def test_of_processes_that_want_the_same_leases_each_lease_goes_to_one(tmp_path: Path) -> None:
    path = tmp_path / "group.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIM_ALL, str(path), owner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for owner in ("a", "b", "c")
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(map(int, sum(won, []))) == list(range(200))
    with BlockingSqliteCheckpointStore(path) as store:
        held = store.list_ownership("namespace", "hub", "group")
    owners = {record["partition_id"]: record["owner_id"] for record in held}
    assert owners == {each: owner for owner, theirs in zip("abc", won, strict=True) for each in theirs}


def test_process_that_is_killed_leaves_every_checkpoint_that_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "group.db"
    with subprocess.Popen(
        [sys.executable, "-c", MARK_FOREVER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(50):
            last = int(process.stdout.readline())
        process.kill()
        last = max([last, *map(int, process.stdout.read().split()[:-1])])
    with BlockingSqliteCheckpointStore(path) as store:
        (mark,) = store.list_checkpoints("namespace", "hub", "group")
    assert mark["sequence_number"] >= last
    assert mark["offset"] == str(mark["sequence_number"])


def test_threads_share_one_object(tmp_path: Path) -> None:
    with BlockingSqliteCheckpointStore(tmp_path / "group.db") as store, ThreadPoolExecutor(8) as pool:
        claims = list(
            pool.map(lambda n: store.claim_ownership([NAME.record(str(n % 20), owner_id=str(n))]), range(200))
        )
        assert sum(map(len, claims)) == 20
        assert len(store.list_ownership("namespace", "hub", "group")) == 20


def test_file_is_in_wal_mode_with_full_syncs_and_carries_its_format(tmp_path: Path) -> None:
    path = tmp_path / "group.db"
    with BlockingSqliteCheckpointStore(path) as store:
        assert store._file.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._file.execute("PRAGMA user_version").fetchone() == (FORMAT,)


def test_newer_format_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "group.db"
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version = {FORMAT + 1}")
    other.close()
    with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}"):
        BlockingSqliteCheckpointStore(path)
    other = sqlite3.connect(path)
    assert other.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    other.close()


def test_checkpoint_of_a_client_that_knows_no_sequence_number_is_kept_as_it_is(tmp_path: Path) -> None:
    with BlockingSqliteCheckpointStore(tmp_path / "group.db") as store:
        store.update_checkpoint(NAME.record("0", offset=42, sequence_number=None))
        (mark,) = store.list_checkpoints("namespace", "hub", "group")
    assert (mark["offset"], mark["sequence_number"]) == ("42", None)

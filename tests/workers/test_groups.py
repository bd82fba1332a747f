"""A group is a file, or a folder that stays together; the table of long ones names nothing that is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workers.groups import COMPUTING, FOLDERS, WAITING, computes, group_of, is_for_waiting, seconds_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("src/hubweir/kernels/tests/test_crc.py::test_a[x::y/z]", "src/hubweir/kernels/tests/test_crc.py"),
        ("tests/spark/test_batch.py::test_a", "tests/spark"),
        ("tests/sparkling/test_batch.py::test_a", "tests/sparkling/test_batch.py"),
        ("src/hubweir/spark/tests/test_errors.py::test_a", "src/hubweir/spark/tests/test_errors.py"),
    ],
)
def test_group_is_the_file_or_the_folder(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_groups_and_their_times_are_of_files_that_are_there() -> None:
    names = [*WAITING, *COMPUTING]
    assert [name for name in (*FOLDERS, *names) if not (ROOT / name).exists()] == []
    assert [name for name in names if group_of(f"{name}/test_x.py") != name and group_of(name) != name] == []


def test_a_group_has_one_kind_and_one_without_a_line_computes_for_a_moment() -> None:
    assert WAITING.keys() & COMPUTING.keys() == set()
    assert (computes("tests/nothing.py"), seconds_of("tests/nothing.py")) == (True, 0)
    waiting, computing = next(iter(WAITING)), next(iter(COMPUTING))
    assert (computes(waiting), seconds_of(waiting)) == (False, WAITING[waiting])
    assert (computes(computing), seconds_of(computing)) == (True, COMPUTING[computing])


@pytest.mark.parametrize(
    ("processors", "workers", "computing"),
    [(2, 6, ["gw0", "gw1"]), (4, 6, ["gw0", "gw1", "gw2"]), (None, 6, ["gw0"]), (2, 2, ["gw0"]), (2, 1, ["gw0"])],
)
def test_workers_for_what_computes_are_as_many_as_processors_and_half_at_most(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, workers: int, computing: list[str]
) -> None:
    """Those in the place of dead ones are behind all."""
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    names = [f"gw{number}" for number in range(workers + 2)]
    assert [name for name in names if not is_for_waiting(name, workers)] == computing

"""What the scheduler hands to a worker, and what it keeps of it; test_plugin.py runs it with real workers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.workers.groups import COMPUTING, WAITING
from tests.workers.scheduling import GroupScheduling

TESTS = [f"src/test_{file}.py::test_{number}" for file in range(8) for number in range(4)]
REPORTS: list[str] = []  # why collections differ


class Worker:
    """It notes the places of the tests that it is given."""

    def __init__(self, name: str = "gw0") -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given: list[int] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.given += places

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(*workers: Worker, found: dict[Worker, list[str]] | None = None) -> GroupScheduling:
    """Workers that all have found TESTS, or what stands in found, and their first groups."""
    config = SimpleNamespace(
        getvalue=lambda name: ["popen"] * len(workers),
        option=SimpleNamespace(loadscopereorder=True, maxfail=0),
        hook=SimpleNamespace(pytest_collectreport=lambda report: REPORTS.append(str(report.longrepr))),
    )
    scheduling = GroupScheduling(config, Producer("scheduling", enabled=False))
    for worker in workers:
        scheduling.add_node(worker)
    for worker in workers:
        scheduling.add_node_collection(worker, (found or {}).get(worker, TESTS))
    scheduling.schedule()
    return scheduling


def test_each_test_is_given_once_and_forgotten_when_it_is_done() -> None:
    worker = Worker()
    scheduling = scheduled(worker)
    done = 0
    while done < len(worker.given):
        scheduling.mark_test_complete(worker, worker.given[done])
        done += 1
        kept = [test for group in scheduling.assigned_work[worker].values() for test in group]
        assert kept == [TESTS[place] for place in worker.given[done:]]
    assert sorted(worker.given) == list(range(len(TESTS)))
    assert scheduling.assigned_work[worker] == {} and worker.shutting_down


def files_of(worker: Worker) -> list[int]:
    """The numbers of the files whose tests a worker has been given, in order."""
    return list(dict.fromkeys(place // 4 for place in worker.given))


def do_all(scheduling: GroupScheduling, worker: Worker) -> None:
    """All that it has been given is done."""
    for place in list(worker.given):
        if TESTS[place] in scheduling.assigned_work[worker].get(TESTS[place].split("::")[0], ()):
            scheduling.mark_test_complete(worker, place)


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)


@pytest.mark.usefixtures("two_processors")
def test_some_workers_compute_while_others_wait_and_the_longest_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    for file, seconds in ((4, 5), (5, 50), (6, 500), (7, 90)):
        monkeypatch.setitem(WAITING, f"src/test_{file}.py", seconds)
    for file, seconds in ((1, 9), (2, 19), (3, 29)):
        monkeypatch.setitem(COMPUTING, f"src/test_{file}.py", seconds)
    workers = [Worker(f"gw{number}") for number in range(4)]
    scheduling = scheduled(*workers)
    assert [files_of(worker) for worker in workers] == [[0], [3], [6], [7]]
    for worker in workers:
        do_all(scheduling, worker)
    assert [files_of(worker) for worker in workers] == [[0, 1], [3, 2], [6, 5], [7, 4]]


@pytest.mark.usefixtures("two_processors")
def test_a_worker_whose_kind_is_used_up_takes_the_longest_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for file in range(8):
        monkeypatch.setitem(WAITING, f"src/test_{file}.py", file)
    first, second = Worker("gw0"), Worker("gw1")
    scheduled(first, second)
    assert (files_of(first), files_of(second)) == ([7], [6])


@pytest.mark.usefixtures("two_processors")
def test_of_two_workers_one_computes_and_the_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAITING, "src/test_5.py", 9)
    first, second = Worker("gw0"), Worker("gw1")
    scheduled(first, second)
    assert (files_of(first), files_of(second)) == ([0], [5])


@pytest.mark.usefixtures("two_processors")
def test_one_worker_alone_gets_the_files_of_either_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    for file in range(1, 8):
        monkeypatch.setitem(WAITING, f"src/test_{file}.py", 9 - file)
    worker = Worker()
    scheduling = scheduled(worker)
    while not worker.shutting_down:
        do_all(scheduling, worker)
    assert files_of(worker) == list(range(8))


@pytest.mark.usefixtures("two_processors")
def test_a_worker_in_the_place_of_a_dead_one_takes_files_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAITING, "src/test_1.py", 9)
    first, other = Worker("gw0"), Worker("gw2")
    scheduled(first, other)
    assert (files_of(first), files_of(other)) == ([0], [1])


WAITS = [test for test in TESTS if test.startswith(("src/test_5", "src/test_6"))]


@pytest.fixture
def two_files_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAITING, "src/test_5.py", 9)
    monkeypatch.setitem(WAITING, "src/test_6.py", 8)
    REPORTS.clear()


@pytest.mark.usefixtures("two_processors", "two_files_wait")
def test_a_worker_that_has_looked_for_what_waits_alone_gets_that_and_ends() -> None:
    """It has found it first, and the other one goes on."""
    waits, computing = Worker("gw1"), Worker("gw0")
    scheduling = scheduled(waits, computing, found={waits: WAITS})
    assert [WAITS[place] for place in waits.given] == WAITS[:4] and files_of(computing) == [0]
    while not waits.shutting_down:
        scheduling.mark_test_complete(waits, waits.given[len(WAITS) - left_of(scheduling, waits)])
    while not computing.shutting_down:
        do_all(scheduling, computing)
    assert [WAITS[place] for place in waits.given] == WAITS and not REPORTS
    assert files_of(computing) == [0, 1, 2, 3, 4, 7]


def left_of(scheduling: GroupScheduling, waits: Worker) -> int:
    """How many of WAITS it has not done."""
    ahead = sum(test in unit for unit in scheduling.workqueue.values() for test in WAITS)
    return ahead + sum(map(len, scheduling.assigned_work[waits].values()))


@pytest.mark.usefixtures("two_processors", "two_files_wait")
@pytest.mark.parametrize(
    ("number", "whole", "missing"),
    [(1, TESTS, TESTS[0]), (2, TESTS, TESTS[0]), (2, TESTS, WAITS[0]), (2, WAITS, WAITS[0]), (3, WAITS, WAITS[-1])],
)
def test_workers_that_have_found_different_tests_get_none(number: int, whole: list[str], missing: str) -> None:
    """Of those that look for everything, gw0 and gw1 and in a run of chosen paths all, as of those that look for what
    waits."""
    workers = [Worker(f"gw{number}") for number in range(4)]
    found = {worker: TESTS if worker in workers[:2] else whole for worker in workers}
    found[workers[number]] = [test for test in whole if test != missing]
    scheduled(*workers, found=found)
    assert not any(worker.given for worker in workers)
    assert REPORTS and missing in REPORTS[0]

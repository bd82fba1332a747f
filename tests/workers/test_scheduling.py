"""What the scheduler hands to a worker, and what it keeps of it; test_plugin.py runs it with real workers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.workers.groups import COMPUTING, WAITING
from tests.workers.scheduling import GroupScheduling

TESTS = [f"src/test_{file}.py::test_{number}" for file in range(8) for number in range(4)]


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


def scheduled(*workers: Worker) -> GroupScheduling:
    """Workers that all have found TESTS, and their first groups."""
    config = SimpleNamespace(
        getvalue=lambda name: ["popen"] * len(workers), option=SimpleNamespace(loadscopereorder=True)
    )
    scheduling = GroupScheduling(config, Producer("scheduling", enabled=False))
    for worker in workers:
        scheduling.add_node(worker)
    for worker in workers:
        scheduling.add_node_collection(worker, TESTS)
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

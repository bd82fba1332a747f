"""What the scheduler hands to a worker, and what it keeps of it; test_plugin.py runs it with real workers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.workers.groups import SECONDS
from tests.workers.scheduling import GroupScheduling

TESTS = [f"src/test_{file}.py::test_{number}" for file in range(3) for number in range(4)]


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


def test_the_first_worker_begins_with_the_shortest_group_and_others_with_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SECONDS, "src/test_1.py", 9)
    monkeypatch.setitem(SECONDS, "src/test_2.py", 5)
    first, second = Worker("gw0"), Worker("gw1")
    scheduling = scheduled(first, second)
    assert ({TESTS[place][:13] for place in first.given}, {TESTS[place][:13] for place in second.given}) == (
        {"src/test_0.py"},
        {"src/test_1.py"},
    )
    for place in list(second.given):
        scheduling.mark_test_complete(second, place)
    assert TESTS[second.given[-1]].startswith("src/test_2.py")

"""What the scheduler hands to a worker, and what it keeps of it; test_plugin.py runs it with real workers."""

from __future__ import annotations

from types import SimpleNamespace

from xdist.remote import Producer

from tests.workers.scheduling import GroupScheduling

TESTS = [f"src/test_{file}.py::test_{number}" for file in range(3) for number in range(4)]


class Worker:
    """It notes the places of the tests that it is given."""

    def __init__(self) -> None:
        self.shutting_down = False
        self.given: list[int] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.given += places

    def shutdown(self) -> None:
        self.shutting_down = True


def test_each_test_is_given_once_and_forgotten_when_it_is_done() -> None:
    worker = Worker()
    config = SimpleNamespace(getvalue=lambda name: ["popen"], option=SimpleNamespace(loadscopereorder=True))
    scheduling = GroupScheduling(config, Producer("scheduling", enabled=False))
    scheduling.add_node(worker)
    scheduling.add_node_collection(worker, TESTS)
    scheduling.schedule()
    done = 0
    while done < len(worker.given):
        scheduling.mark_test_complete(worker, worker.given[done])
        done += 1
        kept = [test for group in scheduling.assigned_work[worker].values() for test in group]
        assert kept == [TESTS[place] for place in worker.given[done:]]
    assert sorted(worker.given) == list(range(len(TESTS)))
    assert scheduling.assigned_work[worker] == {} and worker.shutting_down

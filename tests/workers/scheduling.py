"""How pytest-xdist gives tests to workers here: group by group, the longest first; and a test that ends its worker
fails, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import SupportsIndex

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.workers.groups import group_of, seconds_of

SHORT_FIRST = "gw0"  # the name that pytest-xdist gives to its first worker


class Collection(list[str]):
    """The tests that a worker has found, by their places; a place is looked up, where a list would be searched."""

    def __init__(self, tests: Iterable[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(self)}

    def index(self, test: str, *_: SupportsIndex) -> int:
        return self._places[test]


class GroupScheduling(LoadScopeScheduling):
    """A worker that is done with its groups but for two tests gets the longest one that still waits.

    Long groups wait for servers more than they compute, and short ones compute. So the first worker gets the shortest
    one instead: it uses the processor while the others wait, and not all of them compute at the end.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Collection(collection)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a test that is done, and its group with its last test. pytest-xdist notes it and, whenever a test is
        done, counts what is left among all that the worker ever had."""
        test = self.registered_collections[node][item_index]
        work, group = self.assigned_work[node], group_of(test)
        del work[group][test]
        if not work[group]:
            del work[group]
        self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        chosen = min if node.gateway.id == SHORT_FIRST else max
        self.workqueue.move_to_end(chosen(self.workqueue, key=seconds_of), last=False)
        # To a worker that has died, which pytest-xdist has yet to hear of: remove_node takes the group back then.
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker more, if it has little: at least two tests, for it begins one only when it knows the next.

        pytest-xdist gives one group at a time. The worker that replaces a dead one then waited for ever, when that
        group had one test left and all other workers had been told that nothing comes.
        """
        if node not in self.registered_collections:  # it is still looking for its tests
            return
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker out; the test that ended it, if one did. Others get what it had left, without that test."""
        units = self.assigned_work[node]
        crashed = next((test for unit in units.values() for test, done in unit.items() if not done), None)
        left = {group: {test: done or test == crashed for test, done in unit.items()} for group, unit in units.items()}
        self.assigned_work[node] = {group: unit for group, unit in left.items() if not all(unit.values())}
        super().remove_node(node)
        return crashed

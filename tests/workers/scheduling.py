"""How pytest-xdist gives tests to workers here: group by group, of either kind, the longest first; and a test that ends
its worker fails, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import SupportsIndex

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.workers.groups import computes, group_of, is_for_waiting, seconds_of

SHORT_FIRST = "gw0"  # the name that pytest-xdist gives to its first worker; the next one is gw1


class Collection(list[str]):
    """The tests that a worker has found, by their places; a place is looked up, where a list would be searched."""

    def __init__(self, tests: Iterable[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(self)}

    def __contains__(self, test: object) -> bool:
        return test in self._places

    def index(self, test: str, *_: SupportsIndex) -> int:
        return self._places[test]


class GroupScheduling(LoadScopeScheduling):
    """A worker that is done with its groups but for two tests gets another one: the longest that still waits.

    Some workers get groups that compute; the others get those that wait for servers and clients. So neither all workers
    wait, nor do all compute. The first of those that compute gets the shortest group instead, so that few short ones
    are left when the long ones end. A worker takes of the other kind when its own is used up, if it has looked for its
    tests: those that wait have looked for nothing else in a run of everything (plugin.py), and end early.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Collection(collection)

    def schedule(self) -> None:
        """The one that has found most comes first: pytest-xdist takes what it has found for all that there is."""
        found = self.registered_collections
        self.registered_collections = dict(sorted(found.items(), key=lambda each: len(each[1]), reverse=True))
        super().schedule()

    def _check_nodes_have_same_collection(self) -> bool:
        """Those that have looked for what waits alone are compared with what the others have found of it."""
        found = self.registered_collections
        waiting = {node: [test for test in tests if not computes(group_of(test))] for node, tests in found.items()}
        whole = {
            node: tests
            for node, tests in found.items()
            if not self._is_for_waiting(node) or len(tests) > len(waiting[node])
        }
        alike = []
        for self.registered_collections in (whole, waiting):
            alike.append(super()._check_nodes_have_same_collection())
        self.registered_collections = found
        return all(alike)

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
        group = self._next_of(node)
        if group is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(group, last=False)
        # To a worker that has died, which pytest-xdist has yet to hear of: remove_node takes the group back then.
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _next_of(self, node: WorkerController) -> str | None:
        """The group that a worker gets next; None where it has found no test of what is left."""
        found, waits = self.registered_collections[node], self._is_for_waiting(node)
        left = [group for group, unit in self.workqueue.items() if next(iter(unit)) in found]
        of_its_kind = [group for group in left if computes(group) != waits]
        chosen = min if node.gateway.id == SHORT_FIRST and of_its_kind else max
        return chosen(of_its_kind or left, key=seconds_of, default=None)

    def _is_for_waiting(self, node: WorkerController) -> bool:
        return is_for_waiting(node.gateway.id, self.numnodes)

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

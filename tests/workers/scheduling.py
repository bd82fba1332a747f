"""How pytest-xdist gives tests to workers here: group by group, the longest first; and a test that ends its worker
fails, once."""

from __future__ import annotations

from contextlib import suppress

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.workers.groups import group_of, seconds_of


class GroupScheduling(LoadScopeScheduling):
    """A worker that is done with its groups but for two tests gets the longest one that still waits."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(max(self.workqueue, key=seconds_of), last=False)
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

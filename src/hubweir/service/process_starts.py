"""The broker processes of a service that starts: waited for until all of them are up, and then until all serve.

One that ends meanwhile is started again, as at any time. The start ends, with a line for people, where another try
would do as the one before: a process that could not even be reached, one that was reached and never took clients, and
one that ended again and again. One of an earlier supervisor is replaced whatever it did, for that says nothing of the
next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hubweir.errors import HubweirError
from hubweir.service.supervised_process import SupervisedProcess

ENDS_LIMIT = 5  # of one process: they take it 2 s where it ends at once


class BrokerProcessFailed(HubweirError):
    """A broker process cannot start, and so the service cannot; its log says why."""


class ProcessStarts:
    """See the module's text. Used until all serve."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._in_vain = ""

    def changed(self) -> None:
        """Something may hold of a process that did not before."""
        self._changed.set()

    def ended(self, process: SupervisedProcess) -> None:
        """A life of a process is over, and it is still there to be asked about it."""
        self._in_vain = self._in_vain or _in_vain(process)
        self._changed.set()

    async def all(self, processes: Sequence[SupervisedProcess], holds: Callable[[SupervisedProcess], bool]) -> None:
        """Wait until something holds for every process. BrokerProcessFailed when one cannot start."""
        while not all(map(holds, processes)):
            if self._in_vain:
                raise BrokerProcessFailed(self._in_vain)
            self._changed.clear()
            await self._changed.wait()


def _in_vain(process: SupervisedProcess) -> str:
    """Why the end of its newest life ends the start; "": the next life may do better."""
    name = f"broker process {process.index}"
    if process.life is None or not process.life.is_child:
        return ""
    if not process.was_up:
        return f"{name} ended before it could be reached; the log above says why"
    if process.unserved:
        why = f"{name} {process.unserved}, and was killed for it after a minute"
        return f"{why}; its lines in the log above say why. Mend what they name, then start the service again"
    if process.starts >= ENDS_LIMIT:
        return f"{name} ended {process.starts} times before the service was ready; the log above says how"
    return ""

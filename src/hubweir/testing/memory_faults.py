"""Plans failures of calls of a disk in memory, once or from then on, and tells whether a plan was ever met.

A plan counts from now on, and only the calls that its fault fits: the third ENOSPC from now is the third call that
needs space. So no plan can lie in the past, and a script in which each n is tried meets each call once. A plan that was
never met tests nothing: `Plan.fired` says how often it was, and `MemoryFiles.plans` keeps every plan for whoever holds
a share of them against a bound. A test whose plans were all missed fails (conftest.py of the project).
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from enum import Enum


class Ended(BaseException):
    """The process ends here. Not an Exception: no code under test may catch it."""


class PowerCut(Ended):
    """The machine has no power any more: what was not synced is at the mercy of the seed."""


class Killed(Ended):
    """The process is killed, and the machine goes on: the page cache stays."""


class Fault(Enum):
    """How a planned call fails."""

    EIO = "any call fails with EIO"
    ENOSPC = "a call that needs space fails with ENOSPC; a sync too"
    SHORT = "a write stores a part and fails with EIO"
    EINTR = "a read or a write fails with EINTR"
    EMFILE = "a call that may have to open a file fails with EMFILE"
    SYNC_EIO = "a sync fails with EIO"
    LYING_SYNC = "a sync succeeds and does nothing"
    KILL = "the process is killed before the call"
    POWER_CUT = "the power goes before the call"


_SYNCS = frozenset({"sync", "sync_folder"})
# What a fault fits; a fault without a line fits every call.
_FITS = {
    Fault.ENOSPC: _SYNCS | {"create", "write", "reserve", "rename", "make_folder"},
    Fault.SHORT: frozenset({"write"}),
    Fault.EINTR: frozenset({"read", "write"}),
    # What needs a descriptor: a file's own may have been closed meanwhile, but not between a write and its sync.
    Fault.EMFILE: frozenset({"create", "open", "list", "sync_folder", "lock_folder", "read", "write", "reserve"}),
    Fault.SYNC_EIO: _SYNCS,
    Fault.LYING_SYNC: _SYNCS,
}


@dataclass(slots=True, eq=False)
class Plan:
    """The nth call from now on that the fault fits fails, or every one from it on. fired: how often it was met.

    call: only calls of this name count. then: a fault that is planned when this one is met, and its nth.
    """

    fault: Fault
    nth: int
    forever: bool
    call: str = ""
    then: tuple[Fault, int] | None = None
    fired: int = 0

    def meets(self, name: str) -> bool:
        """Count a call; whether it fails by this plan."""
        fits = _FITS.get(self.fault)
        if fits is not None and name not in fits or self.call not in ("", name):
            return False
        self.nth -= 1
        if self.nth and not (self.forever and self.nth < 0):
            return False
        self.fired += 1
        return True

    @property
    def is_over(self) -> bool:
        """Whether it can be met no more."""
        return bool(self.fired) and not self.forever


def fail(fault: Fault, name: str) -> Fault:
    """Raise what the fault says of a call, or return the fault for the call itself to act out."""
    if fault is Fault.POWER_CUT:
        raise PowerCut
    if fault is Fault.KILL:
        raise Killed
    if fault is Fault.EMFILE:
        raise system_error(errno.EMFILE)
    if name not in _SYNCS and fault is Fault.EIO:
        raise system_error(errno.EIO)
    return fault


def system_error(number: int) -> OSError:
    """The error as the system raises it."""
    return OSError(number, os.strerror(number))

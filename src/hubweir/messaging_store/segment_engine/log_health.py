"""The health of one log: whether it takes appends, and why not. Used on the owner's loop only; nobody else changes it.

After a crash all of it is gone: who opens a log again finds out.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.errors import LogFenced


class LogHealth:
    """offline: why appends are refused, for people; None: they are not. fenced: once set, for good, offline with it.
    is_full: the disk had no space for the newest append. is_closing: the log closes, and is never opened again.

    on_fenced: whoever is told when another process owns the store; the log sets it.
    """

    __slots__ = ("fenced", "is_closing", "is_full", "offline", "on_fenced")

    def __init__(self) -> None:
        self.offline: str | None = None
        self.fenced: LogFenced | None = None
        self.is_full = False
        self.is_closing = False
        self.on_fenced: Callable[[LogFenced], None] | None = None

    def go_offline(self, why: str) -> None:
        """Appends are refused from now on, for a reason that takes the place of an older one."""
        self.offline = why

    def come_back(self) -> None:
        """What failed is repaired: appends are taken again, unless the log is fenced."""
        self.offline = None if self.fenced is None else str(self.fenced)

    def fence(self, error: LogFenced) -> None:
        """Another process owns the store: this one writes nothing any more, for good."""
        if self.fenced is None:
            self.fenced, self.offline = error, str(error)
            if self.on_fenced is not None:
                self.on_fenced(error)

    def ran_out_of_space(self) -> None:
        """The disk had no space for an append."""
        self.is_full = True

    def found_space(self) -> None:
        """An append was written, or there is space for one again, or what it lacks is not space."""
        self.is_full = False

    def close(self) -> None:
        """The log closes: appends are refused from now on."""
        self.is_closing = True

    def let_go(self) -> None:
        """The log is closed: whoever would be told is forgotten."""
        self.on_fenced = None

"""The handles of one session: which link stands under which number, and which of our attaches wait for an answer.

Each side numbers a link in the frames that it writes (part 2, section 2.5.3). We give the lowest free number; frames
that come are looked up by the peer's.
"""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar, Generic, Protocol, TypeVar

from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.number_pool import NumberPool
from hubweir.amqp.transport.performatives import Attach
from hubweir.errors import HANDLE_IN_USE, UNATTACHED_HANDLE


class Handled(Protocol):
    """What is known of a link here. handle: ours, below 0 before it has one; remote_handle: the peer's."""

    ROLE: ClassVar[bool]
    handle: int
    remote_handle: int

    @property
    def name(self) -> str:
        """As in its attach."""


L = TypeVar("L", bound=Handled)


class LinkHandles(Generic[L]):
    """remote_max: the highest handle that the peer takes, from its begin."""

    __slots__ = ("_by_remote", "_numbers", "_unanswered", "remote_max")

    def __init__(self, remote_max: int) -> None:
        self.remote_max = remote_max
        self._numbers = NumberPool()
        self._by_remote: dict[int, L] = {}
        self._unanswered: dict[tuple[str, bool], L] = {}  # our attaches, by name and our role

    @property
    def links(self) -> list[L]:
        """All that stand or wait for an answer, in the order in which they were attached."""
        return [*self._by_remote.values(), *self._unanswered.values()]

    def number(self, link: L) -> bool:
        """Give a link its handle in frames we write, unless it has one; False when the peer takes no more."""
        if link.handle < 0:
            handle = self._numbers.take(self.remote_max)
            if handle is None:
                return False
            link.handle = handle
        return True

    def is_asked_for(self, link: L) -> bool:
        """Whether an attach of the same name and role waits for its answer."""
        return (link.name, link.ROLE) in self._unanswered

    def asked_for(self, link: L) -> None:
        """Our attach went out."""
        self._unanswered[link.name, link.ROLE] = link

    def answered(self, attach: Attach) -> L | None:
        """The link of ours that the peer's attach answers, which stands under its handle now; None when it asks itself.

        Raises SessionFault when the handle is in use.
        """
        if attach.handle in self._by_remote:
            raise SessionFault(HANDLE_IN_USE, f"handle {attach.handle} names a link that is still attached")
        link = self._unanswered.pop((attach.name, not attach.role), None)
        if link is not None:
            self._by_remote[attach.handle] = link
        return link

    def add(self, handle: int, link: L) -> None:
        """A link of the peer's making stands under its handle."""
        self._by_remote[handle] = link

    def link(self, handle: int) -> L:
        """The link that a frame with this handle is for; SessionFault when there is none."""
        link = self._by_remote.get(handle)
        if link is None:
            raise SessionFault(UNATTACHED_HANDLE, f"handle {handle} names no attached link")
        return link

    @property
    def used(self) -> Container[int]:
        """The peer's handles that name a link."""
        return self._by_remote

    def remove(self, link: L) -> None:
        """The link is over: both numbers are free again."""
        del self._by_remote[link.remote_handle]
        self._numbers.give_back(link.handle)

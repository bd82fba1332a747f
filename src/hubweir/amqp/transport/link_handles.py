"""The handles of one session: which link stands under which number, and which of our attaches wait for an answer.

Each side numbers a link in the frames that it writes (part 2, section 2.5.3). We give the lowest free number; frames
that come are looked up by the peer's.
"""

from __future__ import annotations

from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.link import Link, LinkFault
from hubweir.amqp.transport.link_states import DETACH_WRITTEN
from hubweir.amqp.transport.number_pool import NumberPool
from hubweir.amqp.transport.performatives import Attach
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.errors import HANDLE_IN_USE, NOT_ALLOWED, UNATTACHED_HANDLE


class LinkHandles:
    """remote_max: the highest handle that the peer takes, from its begin."""

    __slots__ = ("_by_remote", "_numbers", "_unanswered", "remote_max")

    def __init__(self, remote_max: int) -> None:
        self.remote_max = remote_max
        self._numbers = NumberPool()
        self._by_remote: dict[int, Link] = {}
        self._unanswered: dict[tuple[str, bool], Link] = {}  # our attaches, by name and our role

    @property
    def links(self) -> list[Link]:
        """All that stand or wait for an answer, in the order in which they were attached."""
        return [*self._by_remote.values(), *self._unanswered.values()]

    def number(self, link: Link) -> bool:
        """Give a link its handle in frames we write, unless it has one; False when the peer takes no more."""
        if link.handle < 0:
            handle = self._numbers.take(self.remote_max)
            if handle is None:
                return False
            link.handle = handle
        return True

    def is_asked_for(self, link: Link) -> bool:
        """Whether an attach of the same name and role waits for its answer."""
        return (link.name, link.ROLE) in self._unanswered

    def asked_for(self, link: Link) -> None:
        """Our attach went out."""
        self._unanswered[link.name, link.ROLE] = link

    def answered(self, attach: Attach) -> Link | None:
        """The link of ours that the peer's attach answers, which stands under its handle now; None when it asks itself.

        Raises SessionFault when the handle is in use.
        """
        if attach.handle in self._by_remote:
            raise SessionFault(HANDLE_IN_USE, f"handle {attach.handle} names a link that is still attached")
        link = self._unanswered.pop((attach.name, not attach.role), None)
        if link is not None:
            self._by_remote[attach.handle] = link
        return link

    def add(self, handle: int, link: Link) -> None:
        """A link of the peer's making stands under its handle."""
        self._by_remote[handle] = link

    def link(self, handle: int) -> Link:
        """The link that a frame with this handle is for; SessionFault when there is none."""
        link = self._by_remote.get(handle)
        if link is None:
            raise SessionFault(UNATTACHED_HANDLE, f"handle {handle} names no attached link")
        return link

    def receiver(self, handle: int) -> ReceiverLink | None:
        """The link that transfers on handle go to; None when it is on its way out and they are dropped."""
        link = self.link(handle)
        if not isinstance(link, ReceiverLink):
            if link.state in DETACH_WRITTEN:
                return None
            raise LinkFault(link, NOT_ALLOWED, "transfers came on a link on which this end sends")
        return None if link.state in DETACH_WRITTEN else link

    def remove(self, link: Link) -> None:
        """The link is over: both numbers are free again."""
        del self._by_remote[link.remote_handle]
        self._numbers.give_back(link.handle)

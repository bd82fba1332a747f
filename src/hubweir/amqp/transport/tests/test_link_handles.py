"""link_handles.py: a frame finds its link, an answer the attach that asked, and numbers are free again afterwards."""

from __future__ import annotations

import pytest

from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.link import Link, LinkFault, ask
from hubweir.amqp.transport.link_handles import LinkHandles
from hubweir.amqp.transport.link_states import LinkState
from hubweir.amqp.transport.performatives import Attach
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.session import Session
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.errors import HANDLE_IN_USE, NOT_ALLOWED, UNATTACHED_HANDLE

SESSION = Session(Connection(Role.CLIENT, EndpointSettings("c")), 0)


def sender(name: str = "s") -> SenderLink:
    """A link of ours that asks to send."""
    return SenderLink(SESSION, ask(name, False, None, None, None, None, None, None), None)


def receiver(name: str, handle: int) -> ReceiverLink:
    """A link of the peer's, which sends on handle."""
    return ReceiverLink(SESSION, None, attach(name, handle, role=False))


def attach(name: str, handle: int, *, role: bool) -> Attach:
    return Attach(name=name, handle=handle, role=role)


def test_a_link_keeps_its_number_and_the_lowest_free_one_is_next() -> None:
    handles = LinkHandles(1)
    first, second, third = sender("a"), sender("b"), sender("c")
    assert handles.number(first) and handles.number(second) and handles.number(first)
    assert (first.handle, second.handle) == (0, 1)
    assert not handles.number(third) and third.handle == -1  # the peer takes handles 0 and 1
    first.remote_handle = 7
    handles.add(7, first)
    handles.remove(first)
    assert handles.number(third) and third.handle == 0


def test_an_answer_finds_the_attach_of_its_name_and_of_the_other_role() -> None:
    handles = LinkHandles(7)
    link = sender("a")
    handles.asked_for(link)
    assert handles.is_asked_for(sender("a")) and not handles.is_asked_for(sender("b"))
    assert handles.answered(attach("a", 3, role=False)) is None  # the peer wants to send, too: no answer
    assert handles.answered(attach("b", 4, role=True)) is None
    assert handles.answered(attach("a", 5, role=True)) is link
    assert not handles.is_asked_for(link) and handles.link(5) is link and handles.links == [link]


def test_links_that_stand_come_before_those_that_wait() -> None:
    handles = LinkHandles(7)
    waiting, standing = sender("w"), receiver("s", 2)
    handles.asked_for(waiting)
    handles.add(2, standing)
    assert handles.links == [standing, waiting]


@pytest.mark.parametrize("asked", [True, False])
def test_a_handle_in_use_is_refused_and_the_link_goes_on(asked: bool) -> None:
    handles = LinkHandles(7)
    standing, link = receiver("s", 2), sender("a")
    handles.add(2, standing)
    if asked:
        handles.asked_for(link)
    with pytest.raises(SessionFault) as fault:
        handles.answered(attach("a", 2, role=True))
    assert fault.value.condition is HANDLE_IN_USE and handles.link(2) is standing
    assert handles.is_asked_for(link) is asked


def test_a_frame_for_no_link_ends_the_session() -> None:
    for look_up in (LinkHandles(7).link, LinkHandles(7).receiver):
        with pytest.raises(SessionFault) as fault:
            look_up(0)
        assert fault.value.condition is UNATTACHED_HANDLE


@pytest.mark.parametrize("state", LinkState)
def test_transfers_go_to_a_receiver_until_its_detach_is_written(state: LinkState) -> None:
    handles = LinkHandles(7)
    taking, sending = receiver("r", 0), sender("s")
    handles.add(0, taking)
    handles.add(1, sending)
    taking.state = sending.state = state
    is_leaving = state in (LinkState.DETACH_PIPE, LinkState.DETACH_SENT, LinkState.CLOSED)
    assert handles.receiver(0) is (None if is_leaving else taking)
    if is_leaving:
        assert handles.receiver(1) is None
    else:
        with pytest.raises(LinkFault) as fault:
            handles.receiver(1)
        assert fault.value.condition is NOT_ALLOWED and fault.value.link is sending


def test_a_link_that_is_over_is_found_no_more() -> None:
    handles = LinkHandles(7)
    link: Link = receiver("r", 3)
    handles.add(3, link)
    handles.remove(link)
    assert handles.links == []
    with pytest.raises(SessionFault):
        handles.link(3)

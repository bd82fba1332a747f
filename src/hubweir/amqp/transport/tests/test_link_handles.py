"""link_handles.py: a frame finds its link, an answer the attach that asked, and numbers are free again afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.link_handles import LinkHandles
from hubweir.amqp.transport.performatives import Attach
from hubweir.errors import HANDLE_IN_USE, UNATTACHED_HANDLE


@dataclass(eq=False)
class SomeLink:
    """What LinkHandles knows of a link. ROLE: False sends, as in a performative."""

    name: str
    remote_handle: int = -1
    handle: int = -1
    ROLE: ClassVar[bool] = False


def handles_up_to(remote_max: int) -> LinkHandles[SomeLink]:
    return LinkHandles(remote_max)


def attach(name: str, handle: int, *, role: bool) -> Attach:
    return Attach(name=name, handle=handle, role=role)


def test_a_link_keeps_its_number_and_the_lowest_free_one_is_next() -> None:
    handles = handles_up_to(1)
    first, second, third = SomeLink("a"), SomeLink("b"), SomeLink("c")
    assert handles.number(first) and handles.number(second) and handles.number(first)
    assert (first.handle, second.handle) == (0, 1)
    assert not handles.number(third) and third.handle == -1  # the peer takes handles 0 and 1
    first.remote_handle = 7
    handles.add(7, first)
    handles.remove(first)
    assert handles.number(third) and third.handle == 0


def test_an_answer_finds_the_attach_of_its_name_and_of_the_other_role() -> None:
    handles = handles_up_to(7)
    link = SomeLink("a")
    handles.asked_for(link)
    assert handles.is_asked_for(SomeLink("a")) and not handles.is_asked_for(SomeLink("b"))
    assert handles.answered(attach("a", 3, role=False)) is None  # the peer wants to send, too: no answer
    assert handles.answered(attach("b", 4, role=True)) is None
    assert handles.answered(attach("a", 5, role=True)) is link
    assert not handles.is_asked_for(link) and handles.link(5) is link and handles.links == [link]


def test_links_that_stand_come_before_those_that_wait() -> None:
    handles = handles_up_to(7)
    waiting, standing = SomeLink("w"), SomeLink("s", 2)
    handles.asked_for(waiting)
    handles.add(2, standing)
    assert handles.links == [standing, waiting]


@pytest.mark.parametrize("asked", [True, False])
def test_a_handle_in_use_is_refused_and_the_link_goes_on(asked: bool) -> None:
    handles = handles_up_to(7)
    standing, link = SomeLink("s", 2), SomeLink("a")
    handles.add(2, standing)
    if asked:
        handles.asked_for(link)
    with pytest.raises(SessionFault) as fault:
        handles.answered(attach("a", 2, role=True))
    assert fault.value.condition is HANDLE_IN_USE and handles.link(2) is standing
    assert handles.is_asked_for(link) is asked


def test_a_frame_for_no_link_ends_the_session() -> None:
    with pytest.raises(SessionFault) as fault:
        handles_up_to(7).link(0)
    assert fault.value.condition is UNATTACHED_HANDLE


def test_a_link_that_is_over_is_found_no_more() -> None:
    handles = handles_up_to(7)
    link = SomeLink("r", 3)
    handles.add(3, link)
    handles.remove(link)
    assert handles.links == []
    with pytest.raises(SessionFault):
        handles.link(3)

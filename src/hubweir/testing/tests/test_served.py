from __future__ import annotations

from hubweir.amqp.transport.link_states import LinkState
from hubweir.testing.frames import transfer
from hubweir.testing.served import feed, served


def test_links_stand_or_wait_as_asked() -> None:
    assert [link.is_attached for link in served(links=3).endpoint.sessions[0].links] == [True] * 3
    assert served(accepts=False).link("up").state is LinkState.ATTACH_RECEIVED


def test_a_read_leaves_nothing_pointing_into_it() -> None:
    side = served()
    feed(side, transfer(0, b"copied"))
    assert [entry.payload for entry in side.deliveries()] == [b"copied"]

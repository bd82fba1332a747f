"""connection_lines.py: the last line of a connection has what all of its links brought and took."""

from __future__ import annotations

import logging

import pytest

from hubweir.gateway.amqp.tests.world import World, event
from hubweir.service_log import CONNECTION_CLOSED, Line


def test_the_last_line_sums_up_all_links_of_a_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    peer = world.trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    for _ in range(3):
        sender.send(event(b"x"), settled=False)
    peer.run(500)
    for _ in range(2):  # one behind the other
        reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=3)
        peer.run(500)
        reader.detach()
        peer.run(100)
    peer.side.endpoint.close()
    peer.run(500)
    [line] = [r.msg for r in caplog.records if isinstance(r.msg, Line) and r.msg.kind is CONNECTION_CLOSED]
    assert line.fields["why"] == "the peer closed it" and line.fields["entities"] == "hub"
    assert (line.fields["sent"], line.fields["received"], line.fields["links"]) == (6, 3, 3)

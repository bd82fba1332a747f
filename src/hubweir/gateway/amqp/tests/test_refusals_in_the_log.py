"""Whatever a peer is refused, the id that it sees stands in the log, with the entity and the reason; no secret does."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest

from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.transport.events import Closed, Settled
from hubweir.amqp.transport.performatives import Disposition
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, answers, queue_world, send, settle
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World, event, put_token, status_of
from hubweir.limits import GatewayLimits
from hubweir.service_log import SEND_REFUSED, Line
from hubweir.testing.frames import frame

TRACKING_ID = re.compile(r"TrackingId:([0-9a-f-]+_G0)")


def refused_attach(world: World) -> str:
    peer = world.trusted_peer()
    return str(peer.refusal(peer.sender("missing/Partitions/0")).description)


def refused_position(world: World) -> str:
    peer = world.trusted_peer()
    link = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", selector="amqp.annotation.x-opt-offset > 'x'")
    return str(peer.refusal(link).description)


def unauthorized_attach(world: World) -> str:
    peer = world.peer()
    return str(peer.refusal(peer.sender("hub")).description)


def second_sender_on_cbs(world: World) -> str:
    peer = world.peer()
    peer.sender("$cbs")
    return str(peer.refusal(peer.sender("$cbs")).description)


def refused_send(world: World) -> str:
    peer = world.trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    sender.send(b"\x00\x53\x75\xa0\x05", settled=False)
    peer.run(200)
    (settled,) = [news for news in peer.side.events if isinstance(news, Settled)]
    assert isinstance(settled.outcome, Rejected) and settled.outcome.error is not None
    return str(settled.outcome.error.description)


def refused_token(world: World) -> str:
    peer = world.peer()
    return peer.put_token("sb://localhost/hub", key="a wrong key")[1]


def token_for_no_entity(world: World) -> str:
    return world.peer().put_token("sb://localhost/Missing/ConsumerGroups/$Default")[1]


def idle_link(world: World) -> str:
    peer = world.trusted_peer()
    sender = peer.sender("hub")
    peer.run(3_000)
    return str(peer.refusal(sender).description)


def fault_of_the_protocol(world: World) -> str:
    peer = world.trusted_peer()
    peer.sender("hub")
    peer._kept.append(b"\x00\x00\x00\x0c\x02\x00\x00\x63\x00\x53\x17\x45")  # end, on a channel without a session
    peer.run()
    return str(closed_with(peer))


def unauthorized_connection(world: World) -> str:
    peer = world.peer()
    peer.receiver("$cbs")
    peer.run(2_000)
    return str(closed_with(peer))


def closed_with(peer: Peer) -> str:
    (closed,) = [news for news in peer.side.events if isinstance(news, Closed)]
    assert closed.error is not None
    return str(closed.error.description)


@pytest.mark.parametrize(
    ("refuse", "says"),
    [
        (refused_attach, "attach refused: amqp:not-found, peer a test, entity 'missing': The messaging entity"),
        (refused_position, "attach refused: com.microsoft:argument-error, peer a test, entity 'hub': "),
        (unauthorized_attach, "attach refused: amqp:unauthorized-access, peer a test, entity 'hub': Unauthorized"),
        (second_sender_on_cbs, "attach refused: amqp:not-allowed, peer a test: This connection has a sender on $cbs"),
        (refused_send, "send refused: amqp:decode-error, peer a test, entity 'hub': The delivery is no legal"),
        (refused_token, "token refused: com.microsoft:auth-failed, peer a test: InvalidSignature: "),
        (
            token_for_no_entity,
            "no such entity: amqp:not-found, peer a test, a good token was put for 'missing/consumergroups/$default': "
            "The messaging entity 'sb://localhost/missing/consumergroups/$default' could not be found. ",
        ),
        (idle_link, "link refused: amqp:link:detach-forced, peer a test, entity 'hub': The link was idle for 1 s"),
        (fault_of_the_protocol, "connection refused: amqp:not-allowed, peer a test: channel 99 carries no session"),
        (unauthorized_connection, "connection refused: amqp:connection:forced, peer a test: The connection held no"),
    ],
)
def test_the_id_that_a_peer_sees_stands_in_the_log(
    refuse: Callable[[World], str], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(limits=GatewayLimits(idle_link_ms=1_000, unauthorized_connection_ms=1_000))
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    caplog.clear()
    seen = TRACKING_ID.search(refuse(world))
    assert seen is not None
    (line,) = [line for line in caplog.messages if seen[1] in line]
    assert line.startswith(says)


def test_a_lost_lock_is_in_the_log_when_it_is_told_and_not_when_a_receiver_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = queue_world()
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    peer = world.trusted_peer()
    send(peer, b"x")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert settle(peer, link, 0, 0, Accepted()) == [(0, 0, Accepted())]
    assert not caplog.messages
    begun = len(peer.came)
    peer._kept.append(frame(Disposition(role=True, first=0, state=Accepted())))
    peer.run()
    [(_, _, told)] = answers(peer, begun)
    seen = TRACKING_ID.search(told.error.description)
    assert seen is not None
    [line] = caplog.messages
    assert line.startswith("send refused: com.microsoft:message-lock-lost, peer a test, entity 'orders': The lock")
    assert seen[1] in line


def test_every_rejected_delivery_of_a_flood_is_answered_and_is_a_line_of_one_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    peer = world.trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    for _ in range(200):
        sender.send(b"\x00\x53\x75\xa0\x05", settled=False)
    peer.run(500)
    assert len(peer.outcomes(sender)) == 200
    kinds = {(record.msg.kind, record.msg.sort) for record in caplog.records if isinstance(record.msg, Line)}
    assert len(caplog.records) == 200 and kinds == {(SEND_REFUSED, "amqp:decode-error")}


def test_no_token_no_key_and_no_body_is_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    caplog.set_level(logging.DEBUG)
    world.peer(mechanism="PLAIN", response=b"\0RootManageSharedAccessKey\0a wrong key")
    peer = world.peer()
    token = make_token("sb://localhost/elsewhere", ROOT, KEY, 4_000_000_000)
    bad = [token, token[:-5], "SharedAccessSignature sr=secret-part", "e30.c2VjcmV0LXBhcnQ.c2lnbmF0dXJl", 7]
    codes = [status_of(peer.request("$cbs", put_token("sb://localhost/hub", each)))[0] for each in bad]
    assert all(code >= 400 for code in codes)
    trusted = world.trusted_peer()
    sender = trusted.sender("hub/Partitions/0")
    sender.send(event(b"secret-part" * 200_000), settled=False)
    trusted.run(500)
    assert "SASL refused: " in caplog.text and "send refused: amqp:link:message-size-exceeded" in caplog.text
    for secret in ("a wrong key", KEY, "secret-part", token.partition("sig=")[2][:20], "c2VjcmV0LXBhcnQ"):
        assert secret not in caplog.text

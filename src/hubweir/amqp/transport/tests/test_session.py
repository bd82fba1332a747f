from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.amqp.endpoint import EndpointSettings
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import LinkAttached, LinkDetached, SessionEnded
from hubweir.amqp.transport.performatives import Attach, Begin, Detach, End, Flow, Transfer
from hubweir.amqp.transport.session_states import SessionState
from hubweir.amqp.types.values import Symbol
from hubweir.testing.endpoint_pair import EndpointPair
from hubweir.testing.frames import BEGIN, OPEN, RECEIVE_LINK, SEND_LINK, frame, transfer, written
from hubweir.testing.served import feed, served

ERROR = AmqpError(condition="amqp:not-found", description="there is no such thing")


def test_begin_is_answered_on_the_same_number_where_it_is_free() -> None:
    side = served(links=0)
    feed(side, frame(BEGIN, channel=7))
    channel, begin = written(side.written)[-1]
    assert channel == 7
    assert begin == Begin(
        remote_channel=7, next_outgoing_id=1, incoming_window=5_000, outgoing_window=5_000, handle_max=255
    )


def test_hundreds_of_sessions_one_after_another_and_ten_at_once() -> None:
    side = served(links=0)
    for _ in range(300):
        feed(side, frame(BEGIN, channel=1) + frame(End(), channel=1))
    for channel in range(1, 11):
        feed(side, frame(BEGIN, channel=channel))
    assert len(side.endpoint.sessions) == 11
    assert sum(isinstance(event, SessionEnded) for event in side.events) == 300


def test_a_peer_with_a_small_channel_max_gets_answers_it_can_take() -> None:
    side = served(links=0, peer=replace(OPEN, channel_max=1))
    feed(side, frame(BEGIN, channel=900))
    assert written(side.written)[-1][0] == 1
    feed(side, frame(BEGIN, channel=901))
    assert side.endpoint.is_closed


def test_a_window_overrun_ends_nothing_and_a_flow_comes_within_half_of_it() -> None:
    side = served(settings=EndpointSettings("server", incoming_window=10))
    begun = len(side.written)
    for number in range(4):
        feed(side, transfer(number, settled=True))
    assert written(side.written[begun:]) == []
    feed(side, transfer(4, settled=True))
    ((_, flow),) = written(side.written[begun:])
    assert isinstance(flow, Flow)
    assert (flow.handle, flow.next_incoming_id, flow.incoming_window) == (None, 5, 10)
    begun = len(side.written)
    feed(side, b"".join(transfer(5 + number, settled=True) for number in range(200)))
    *before, (_, flow) = written(side.written[begun:])
    assert isinstance(flow, Flow) and flow.next_incoming_id == 205
    assert len(before) <= 1, "a flow for each stretch that was read at once, not for each delivery"
    assert len(side.deliveries()) == 205


def test_a_grant_of_credit_tells_the_window_too() -> None:
    side = served(settings=EndpointSettings("server", incoming_window=10))
    feed(side, b"".join(transfer(number, settled=True) for number in range(4)))
    side.link("up").grant(5)
    begun = len(side.written)
    side.drain()
    feed(side, transfer(4, settled=True))
    ((_, flow),) = written(side.written[begun:])
    assert isinstance(flow, Flow) and flow.next_incoming_id == 4


def test_an_attach_is_answered_with_what_it_asked() -> None:
    selector = {Symbol("apache.org:selector-filter:string"): "x"}
    asked = Attach(
        name="näme", handle=3, role=True, snd_settle_mode=1, rcv_settle_mode=1,
        source=Source(address="amqps://h/hub/ConsumerGroups/$Default/Partitions/0", filter=selector),
        target=Target(address="me"), max_message_size=5, properties={Symbol("p"): 1},
        desired_capabilities=(Symbol("c"),),
    )  # fmt: skip
    side = served(attach=asked, links=1)
    _, answer = written(side.written)[-1]
    assert answer == replace(
        asked, handle=0, role=False, initial_delivery_count=0, max_message_size=1 << 20, desired_capabilities=None
    )


def test_a_refused_attach_is_an_attach_without_termini_then_a_detach() -> None:
    for attach in (SEND_LINK, replace(RECEIVE_LINK, handle=0)):
        side = served(attach=attach, accepts=False)
        link = side.link(attach.name)
        begun = len(side.written)
        link.refuse(ERROR)
        side.drain()
        (_, answer), (_, detach) = written(side.written[begun:])
        assert isinstance(answer, Attach)
        assert (answer.name, answer.role, answer.source, answer.target) == (attach.name, not attach.role, None, None)
        assert (answer.initial_delivery_count is None) == answer.role
        assert detach == Detach(handle=answer.handle, closed=True, error=ERROR)
        feed(side, transfer(0) if not attach.role else b"")
        feed(side, frame(Detach(handle=0, closed=True)))
        assert side.endpoint.sessions[0].links == []
        assert not isinstance(side.events[-1], LinkDetached), "the host refused it: there is nothing to tell"


def test_a_client_hears_of_a_refusal_with_its_reason() -> None:
    pair = EndpointPair().opened()
    pair.server.accepts = False
    session = pair.client.endpoint.begin_session()
    session.attach_sender("s", source=Source(), target=Target(address="nowhere"))
    session.attach_receiver("r", source=Source(address="nowhere"), target=Target())
    pair.pump()
    for name in ("s", "r"):
        pair.server.link(name).refuse(ERROR)
    pair.pump()
    assert pair.client.said[-2:] == [("refused", "s", ERROR), ("refused", "r", ERROR)]
    assert session.links == [] and pair.server.endpoint.sessions[0].links == []
    again = session.attach_sender("s", source=Source(), target=Target(address="hub"))
    pair.pump()
    pair.server.link("s").accept()
    pair.pump()
    assert again.is_attached


def test_detach_is_answered_closed_and_without_an_error() -> None:
    side = served()
    feed(side, frame(Detach(handle=0, closed=False, error=ERROR)))
    assert written(side.written)[-1][1] == Detach(handle=0, closed=True)
    assert side.said[-1] == ("detached", "up", ERROR, False)


def test_a_peer_that_gives_up_before_the_answer_gets_a_whole_one() -> None:
    side = served(accepts=False)
    link = side.link("up")
    begun = len(side.written)
    feed(side, frame(Detach(handle=0, closed=True)))
    assert [type(performative) for _, performative in written(side.written[begun:])] == [Attach, Detach]
    link.accept()
    link.refuse(ERROR)
    assert side.drain() == b"", "the host's late answer goes nowhere"


def test_links_of_one_name_stand_side_by_side() -> None:
    side = served(links=0)
    for channel in (0, 1):
        if channel:
            feed(side, frame(BEGIN, channel=channel))
        for handle in (0, 1):
            feed(side, frame(replace(SEND_LINK, handle=handle), channel=channel))
    links = [event.link for event in side.events if isinstance(event, LinkAttached)]
    assert [link.is_attached for link in links] == [True] * 4


def test_the_end_of_a_session_takes_its_links_along() -> None:
    side = served()
    link = side.link("up")
    feed(side, transfer(0) + frame(End(error=ERROR)))
    assert side.said[-1] == ("ended", 0, ERROR)
    assert written(side.written)[-1] == (0, End())
    assert not link.is_attached and side.endpoint.sessions == []
    link.grant(5)
    link.detach()
    assert side.drain() == b""


def test_an_end_of_the_host_is_reported_when_it_is_answered() -> None:
    side = served()
    session = side.endpoint.sessions[0]
    session.end(ERROR)
    session.end()
    feed(side, transfer(0))
    assert side.deliveries() == []
    assert [performative for _, performative in written(side.written)][-1] == End(error=ERROR)
    feed(side, frame(End()))
    assert side.said[-1] == ("ended", 0, None)
    assert session.state is SessionState.ENDED


def test_a_client_pipelines_links_and_credit_behind_begin() -> None:
    pair = EndpointPair(piece=5).opened()
    session = pair.client.endpoint.begin_session()
    receiver = session.attach_receiver("r", source=Source(address="hub"), target=Target(address="me"))
    receiver.grant(3)
    pair.pump()
    assert pair.server.link("r").credit == 3
    with pytest.raises(ValueError, match="waiting for its answer"):
        session.attach_receiver("x", source=Source(), target=Target())
        session.attach_receiver("x", source=Source(), target=Target())


def test_a_detach_before_the_answer_is_carried_through() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    link = session.attach_sender("s", source=Source(), target=Target(address="hub"))
    link.detach()
    pair.pump()
    assert pair.client.said[-1] == ("detached", "s", None, True)
    assert session.links == [] and pair.server.endpoint.sessions[0].links == []


def test_an_attach_that_does_not_fit_into_the_peers_frames_ends_the_session() -> None:
    big = replace(SEND_LINK, properties={Symbol("p"): "x" * 600})
    side = served(attach=big, peer=replace(OPEN, max_frame_size=512))
    _, end = written(side.written)[-1]
    assert isinstance(end, End) and end.error is not None
    assert end.error.condition == "amqp:frame-size-too-small"
    assert side.endpoint.is_open


def test_a_long_error_is_cut_down_to_the_peers_frames() -> None:
    side = served(peer=replace(OPEN, max_frame_size=512))
    side.link("up").detach(AmqpError(condition="amqp:internal-error", description="ü" * 4_000))
    _, detach = written(side.drain())[-1]
    assert isinstance(detach, Detach) and detach.error is not None
    assert detach.error.description == "ü" * 80


def test_a_peer_without_room_for_a_handle_loses_the_session() -> None:
    side = served(links=2, begin=replace(BEGIN, handle_max=0))
    _, end = written(side.written)[-1]
    assert isinstance(end, End) and end.error is not None
    assert end.error.condition == "amqp:resource-limit-exceeded"


def test_a_client_takes_no_links() -> None:
    pair = EndpointPair().opened()
    pair.client.endpoint.begin_session()
    pair.pump()
    server_session = pair.server.endpoint.sessions[0]
    server_session.attach_sender("s", source=Source(), target=Target(address="me"))
    pair.pump()
    assert pair.server.said[-1][0] == "refused"
    assert pair.client.endpoint.sessions[0].links == []


def test_transfers_of_a_mixed_session_keep_their_links() -> None:
    side = served(links=2)
    begun = frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"a", message_format=0, more=True), b"first ")
    feed(side, begun + transfer(1, b"other", handle=1) + frame(Transfer(handle=0), b"second"))
    assert [(entry.link_name, entry.payload) for entry in side.deliveries()] == [
        ("up1", b"other"),
        ("up0", b"first second"),
    ]

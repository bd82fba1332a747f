from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.link_states import LinkState
from hubweir.amqp.transport.performatives import Attach, Detach, End
from hubweir.amqp.types.values import Symbol
from hubweir.errors import EncodeError
from hubweir.testing.endpoint_pair import EndpointPair
from hubweir.testing.frames import SEND_LINK, written
from hubweir.testing.served import served

ERROR = AmqpError(condition="amqp:not-allowed", description="no")


def test_accept_answers_what_it_is_given_instead_of_the_echo() -> None:
    side = served(accepts=False)
    link = side.link("up")
    assert (link.name, link.source, link.target) == ("up", SEND_LINK.source, SEND_LINK.target)
    link.accept(
        source=Source(address="s"), target=Target(address="t"), max_message_size=77,
        properties={Symbol("tracking"): "1"}, offered_capabilities=(Symbol("c"),),
    )  # fmt: skip
    ((_, answer),) = written(side.drain())
    assert isinstance(answer, Attach)
    assert answer.source == Source(address="s") and answer.target == Target(address="t")
    assert (answer.max_message_size, answer.properties, answer.offered_capabilities) == (77, {"tracking": "1"}, ("c",))


def test_a_link_is_answered_once() -> None:
    side = served(accepts=False)
    link = side.link("up")
    link.accept()
    link.accept()
    link.refuse(ERROR)
    assert [type(performative) for _, performative in written(side.drain())] == [Attach]
    assert link.is_attached


def test_detaching_a_link_that_waits_for_its_answer_refuses_it() -> None:
    side = served(accepts=False)
    side.link("up").detach(ERROR)
    attach, detach = (performative for _, performative in written(side.drain()))
    assert isinstance(attach, Attach) and attach.source is None and attach.target is None
    assert detach == Detach(handle=0, closed=True, error=ERROR)


def test_a_link_counts_while_it_stands() -> None:
    side = served(links=2)
    connection = side.endpoint.sessions[0].connection
    assert connection.link_count == 2
    first, second = side.endpoint.sessions[0].links
    first.detach()
    first.detach()
    assert (connection.link_count, first.state) == (1, LinkState.DETACH_SENT)
    side.endpoint.sessions[0].end()
    assert connection.link_count == 0
    second.detach()
    assert connection.link_count == 0


def test_a_link_counts_while_its_attach_waits_for_an_answer() -> None:
    side = served(links=2, accepts=False)
    connection = side.endpoint.sessions[0].connection
    first, second = side.endpoint.sessions[0].links
    assert connection.link_count == 2
    first.accept()
    assert connection.link_count == 2
    second.refuse(ERROR)
    assert connection.link_count == 1
    first.detach()
    side.endpoint.sessions[0].end()
    assert connection.link_count == 0


def test_both_ends_know_the_peers_limit() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    link = session.attach_sender("s", source=Source(), target=Target(address="hub"), max_message_size=0)
    assert link.remote_max_message_size is None
    pair.pump()
    assert link.remote_max_message_size == 1 << 20
    assert pair.server.link("s").remote_max_message_size is None, "0 means no limit"


def test_ends_that_cross_are_two_clean_ends() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    link = session.attach_sender("s", source=Source(), target=Target(address="hub"))
    pair.pump()
    server_link = pair.server.link("s")
    link.detach()
    server_link.detach(ERROR)
    pair.pump()
    assert link.state is server_link.state is LinkState.CLOSED
    assert session.links == [] and pair.server.endpoint.sessions[0].links == []
    assert pair.client.said[-1] == ("detached", "s", ERROR, True)


def test_a_name_of_256_bytes_is_taken() -> None:
    side = served(attach=replace(SEND_LINK, name="n" * 256))
    assert side.link("n" * 256).is_attached


def test_an_answer_that_cannot_be_written_ends_the_session_and_leaves_no_part_of_a_frame() -> None:
    side = served(accepts=False)
    begun = len(side.written)
    side.link("up").accept(properties={Symbol("p"): "\ud800"})
    ((_, end),) = written(side.drain())
    assert isinstance(end, End) and end.error is not None
    assert end.error.condition == "amqp:invalid-field"
    assert written(side.written[begun:]) == [(0, end)]


def test_a_client_hears_of_a_value_that_cannot_be_written() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    before = pair.client.drain()
    with pytest.raises(EncodeError):
        session.attach_sender("s", source=Source(), target=Target(), properties={Symbol("p"): "\ud800"})
    assert before and pair.client.drain() == b""

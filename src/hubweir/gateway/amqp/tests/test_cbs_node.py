"""$cbs: tokens become claims; attacks get the refusals that clients know. A positive control stands beside each."""

from __future__ import annotations

from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, encode_message
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.types.values import Int, Symbol, ULong
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.world import HOUR_MS, KEY, ROOT, Peer, World, delete_token, event, put_token, status_of
from hubweir.gateway.settings import LinkSettings
from hubweir.namespace.rights import Rights

HUB = "sb://localhost/hub"
READER = "hub/ConsumerGroups/$Default/Partitions/0"


@pytest.fixture
def world() -> World:
    return World(hubs={"hub": 2, "hub2": 1})


@pytest.fixture
def peer(world: World) -> Peer:
    return world.peer()


def good_token(world: World, audience: str = HUB, *, lifetime_ms: int = HOUR_MS) -> str:
    return make_token(audience, ROOT, KEY, (world.env.now_ms() + lifetime_ms) // 1000)


def test_a_good_token_is_accepted_and_opens_the_hub(peer: Peer) -> None:
    assert peer.put_token(HUB) == (202, "Accepted")
    assert peer.is_attached(peer.sender("hub"))
    assert peer.is_attached(peer.receiver(READER))


def test_without_a_token_nothing_opens_and_the_text_is_the_one_that_clients_match(peer: Peer) -> None:
    sender, receiver = peer.refusal(peer.sender("hub")), peer.refusal(peer.receiver(READER))
    assert (sender.condition, receiver.condition) == ("amqp:unauthorized-access",) * 2
    start = "Unauthorized access. '{}' claim(s) are required to perform this operation"
    assert sender.description.startswith(start.format("Send"))
    assert receiver.description.startswith(start.format("Listen"))
    assert "sb://localhost/hub/consumergroups/$default/partitions/0" in receiver.description
    for part in (", TrackingId:", ", SystemTracker:", ", Timestamp:"):
        assert part in sender.description


@pytest.mark.parametrize(("rule", "opens", "refused"), [("listener", "read", "Send"), ("sender", "send", "Listen")])
def test_a_rule_with_one_right_gives_that_right_only(peer: Peer, rule: str, opens: str, refused: str) -> None:
    assert peer.put_token(HUB, rule=rule)[0] == 202
    sender, receiver = peer.sender("hub"), peer.receiver(READER)
    good, bad = (sender, receiver) if opens == "send" else (receiver, sender)
    assert peer.is_attached(good)
    assert f"'{refused}' claim(s)" in peer.refusal(bad).description


@pytest.mark.parametrize(
    ("message_id", "name"),
    [(UUID(int=5), "uuid"), ("text", "string"), (ULong(5), "ulong")],
)
def test_the_answer_has_the_request_id_in_its_own_type(peer: Peer, message_id: object, name: str) -> None:
    request = put_token(HUB, good_token(peer.world))
    request = Message(
        properties=Properties(message_id=message_id),  # type: ignore[arg-type]
        application_properties=request.application_properties,
        body=request.body,
    )
    answer = peer.request("$cbs", request)
    assert answer.properties is not None
    assert answer.properties.correlation_id == message_id
    assert type(answer.properties.correlation_id) is type(message_id)
    said = answer.application_properties or {}
    assert type(said["status-code"]) is Int
    assert said["status-description"] == said["statusDescription"] == "Accepted"
    assert answer.body == ValueBody(None)


@pytest.mark.parametrize(
    ("change", "code", "start"),
    [
        ({"lifetime_ms": -1_000}, 401, "ExpiredToken: The token is expired. Expiration time:"),
        ({"key": "wrong"}, 401, "InvalidSignature:"),
        ({"rule": "nobody"}, 401, "InvalidSignature:"),
        ({"resource": "sb://localhost/hub2"}, 401, "InvalidAudience:"),
        ({}, 202, "Accepted"),
    ],
)
def test_each_fault_of_a_token_has_its_own_words(peer: Peer, change: dict[str, object], code: int, start: str) -> None:
    status, text = peer.put_token(HUB, **change)  # type: ignore[arg-type]
    assert (status, text[: len(start)]) == (code, start)


def test_an_unknown_rule_and_a_wrong_key_are_told_alike(peer: Peer) -> None:
    unknown, wrong = peer.put_token(HUB, rule="nobody")[1], peer.put_token(HUB, key="wrong")[1]
    assert unknown.partition(", TrackingId")[0] == wrong.partition(", TrackingId")[0]


def test_a_missing_hub_is_told_to_a_good_token_and_to_no_other(peer: Peer) -> None:
    missing = "sb://localhost/missing"
    code, text = peer.put_token(missing)
    assert code == 404
    assert "The messaging entity 'sb://localhost/missing' could not be found" in text
    assert peer.world.counters["gateway.tokens_refused"] == 0
    assert peer.put_token(missing, key="wrong")[0] == 401
    assert "Unauthorized" in peer.refusal(peer.sender("missing")).description
    assert peer.put_token("sb://localhost/")[0] == 202
    assert "could not be found" in peer.refusal(peer.sender("missing")).description


@pytest.mark.parametrize("body", [None, 5, b"SharedAccessSignature sr=", "", "Bearer abc", "SharedAccessSignature "])
def test_what_is_no_token_is_refused_and_the_next_request_works(peer: Peer, body: object) -> None:
    code, _ = status_of(peer.request("$cbs", put_token(HUB, body)))
    assert code in (400, 401)
    assert peer.put_token(HUB)[0] == 202


def test_a_token_is_judged_by_its_content_whatever_its_type_says(peer: Peer) -> None:
    request = put_token(HUB, good_token(peer.world), kind="jwt")
    assert status_of(peer.request("$cbs", request))[0] == 202


def test_a_deleted_token_takes_its_links_along_and_leaves_those_of_others(peer: Peer) -> None:
    for audience in (HUB, "sb://localhost/hub2"):
        assert peer.put_token(audience)[0] == 202
    gone, reader, stays = peer.sender("hub"), peer.receiver(READER), peer.sender("hub2")
    assert status_of(peer.request("$cbs", delete_token(HUB))) == (202, "Accepted")
    for link, claim in ((gone, "Send"), (reader, "Listen")):
        error = peer.refusal(link)
        assert error.condition == "amqp:unauthorized-access"
        assert error.description.startswith(f"Unauthorized access. '{claim}' claim(s) are required")
        assert "The token was taken back by delete-token" in error.description and "xpired" not in error.description
    assert peer.is_attached(stays)
    assert not peer.is_attached(peer.sender("hub"))
    assert peer.put_token(HUB)[0] == 202
    assert peer.is_attached(peer.sender("hub"))


def test_a_link_that_another_token_covers_stays_when_one_is_deleted(peer: Peer) -> None:
    assert peer.put_token("sb://localhost/")[0] == 202
    assert peer.put_token(HUB)[0] == 202
    link = peer.sender("hub")
    assert status_of(peer.request("$cbs", delete_token(HUB)))[0] == 202
    assert peer.is_attached(link)


@pytest.mark.parametrize("audience", ["sb://localhost/none", "sb://localhost/", "hub", "sb://localhost/hub/../x"])
def test_deleting_what_is_not_there_changes_nothing_and_tells_nothing(peer: Peer, audience: str) -> None:
    assert peer.put_token(HUB)[0] == 202
    link = peer.sender("hub")
    assert status_of(peer.request("$cbs", delete_token(audience))) == (202, "Accepted")
    assert peer.is_attached(link)


def test_a_deletion_without_an_audience_is_no_request(peer: Peer) -> None:
    assert status_of(peer.request("$cbs", delete_token(7)))[0] == 400


def test_a_token_deleted_on_one_connection_stays_on_another(world: World, peer: Peer) -> None:
    other = world.peer()
    for each in (peer, other):
        assert each.put_token(HUB)[0] == 202
    link = other.sender("hub")
    assert status_of(peer.request("$cbs", delete_token(HUB)))[0] == 202
    peer.run()
    assert other.is_attached(link)


def test_another_operation_is_refused(peer: Peer) -> None:
    request = Message(application_properties={"operation": "steal-token", "name": HUB}, body=ValueBody("x"))
    assert status_of(peer.request("$cbs", request))[0] == 501


@pytest.mark.parametrize("same_session", [True, False])
def test_one_sender_on_cbs_a_connection_and_the_next_after_it_left(peer: Peer, same_session: bool) -> None:
    first = peer.sender("$cbs")
    other = peer.session() if same_session else peer.endpoint.begin_session()
    second = peer.sender("$cbs", session=other)
    assert peer.is_attached(first)
    assert peer.refusal(second).condition == "amqp:not-allowed"
    first.detach()
    peer.run()
    assert peer.is_attached(peer.sender("$cbs", session=other))


def test_a_session_that_ended_frees_cbs(peer: Peer) -> None:
    session = peer.endpoint.begin_session()
    peer.sender("$cbs", session=session)
    session.end()
    peer.run()
    assert peer.is_attached(peer.sender("$cbs"))


def test_an_answer_waits_for_credit(peer: Peer) -> None:
    reply = peer.receiver("$cbs")
    ask = peer.sender("$cbs")
    ask.send(encode_message(put_token(HUB, good_token(peer.world))), settled=False)
    peer.run(1_000)
    assert peer.received(reply) == []
    reply.grant(1)
    peer.run()
    assert [status_of(answer)[0] for answer in peer.received(reply)] == [202]


@pytest.mark.parametrize("reply_to", ["target", "name", None])
def test_the_answer_finds_its_link(peer: Peer, reply_to: str | None) -> None:
    reply = peer.session().attach_receiver("reply-name", source=Source(address="$cbs"), target=Target(address="target"))
    reply.grant(5)
    other = peer.receiver("$management", credit=5)
    ask = peer.sender("$cbs")
    request = put_token(HUB, good_token(peer.world))
    text = "reply-name" if reply_to == "name" else reply_to
    request = Message(
        properties=Properties(message_id="m", reply_to=text),
        application_properties=request.application_properties,
        body=request.body,
    )
    ask.send(encode_message(request), settled=True)
    peer.run()
    assert len(peer.received(reply)) == 1
    assert peer.received(other) == []


@pytest.mark.parametrize(
    ("audience", "address", "opens"),
    [
        ("sb://localhost/hub", "hub/Partitions/0", True),
        ("amqps://LOCALHOST:5671/HUB/", "hub", True),
        ("sb://localhost/hub/partitions/0", "hub/Partitions/0", True),
        ("sb://localhost/hub/Partitions/0", "hub/Partitions/1", False),
        ("sb://localhost/hub/Partitions/0", "hub", False),
        ("sb://localhost/hub", "hub2", False),
        ("sb://localhost/", "hub2", True),
        ("sb://localhost/hub/publishers/a", "hub/Publishers/a", True),
        ("sb://localhost/hub/publishers/a", "hub/Publishers/ab", False),
        ("sb://localhost/hub/publishers/a", "hub", False),
    ],
)
def test_a_claim_covers_what_lies_under_its_audience(peer: Peer, audience: str, address: str, opens: bool) -> None:
    assert peer.put_token(audience)[0] == 202
    link = peer.sender(address)
    assert peer.is_attached(link) is opens
    if not opens:
        assert peer.refusal(link).condition == "amqp:unauthorized-access"


def test_a_hubs_own_rule_opens_that_hub_only(world: World) -> None:
    world.set_rule("own", Rights.ALL, hub="hub", key="hub-key")
    peer = world.peer()
    assert peer.put_token("sb://localhost/hub", rule="own", key="hub-key")[0] == 202
    assert peer.put_token("sb://localhost/hub2", rule="own", key="hub-key")[0] == 401
    assert peer.put_token("sb://localhost/", rule="own", key="hub-key")[0] == 401


def test_tokens_come_in_a_burst_and_then_ten_a_second_and_none_is_refused() -> None:
    world = World(link_settings=LinkSettings(put_token_burst=5, put_token_per_second=10))
    peer = world.peer()
    reply = peer.receiver("$cbs", credit=100)
    ask = peer.sender("$cbs")
    for _ in range(15):
        ask.send(encode_message(put_token(HUB, good_token(world))), settled=False)
    peer.run(50)
    assert len(peer.received(reply)) == 5
    peer.run(500)
    assert len(peer.received(reply)) == 10
    peer.run(600)
    assert [status_of(answer)[0] for answer in peer.received(reply)] == [202] * 15


def test_tokens_that_wait_are_answered_in_the_order_in_which_they_came() -> None:
    world = World(link_settings=LinkSettings(put_token_burst=1, put_token_per_second=10))
    peer = world.peer()
    reply, ask = peer.receiver("$cbs", credit=100), peer.sender("$cbs")
    good = [True, True, False, True, False, False]
    for is_good in good:
        ask.send(encode_message(put_token(HUB, good_token(world) if is_good else "no token")), settled=False)
    peer.run(2_000)
    assert [status_of(answer)[0] == 202 for answer in peer.received(reply)] == good
    assert world.counters["gateway.tokens_refused"] == good.count(False)


def test_what_waits_is_not_looked_at_when_its_connection_has_ended() -> None:
    world = World(link_settings=LinkSettings(put_token_burst=1, put_token_per_second=10))
    peer = world.peer()
    ask = peer.sender("$cbs")
    for token in (good_token(world), "no token", "no token"):
        ask.send(encode_message(put_token(HUB, token)), settled=False)
    peer.run()
    peer.cut()
    world.run_for(2_000)
    assert world.counters["gateway.tokens_refused"] == 0


def test_a_token_for_no_audience_is_refused(peer: Peer) -> None:
    status, text = status_of(peer.request("$cbs", put_token("", good_token(peer.world))))
    assert status == 400 and "no property 'name'" in text


def test_put_token_and_a_transfer_in_one_segment_are_done_in_order(world: World) -> None:
    """What was asked first is answered first: the attach comes behind the token, so it stands."""
    peer = world.peer()
    session = peer.session()
    reply = session.attach_receiver("r", source=Source(address="$cbs"), target=Target(address="t"))
    reply.grant(5)
    ask = peer.sender("$cbs")
    ask.send(encode_message(put_token(HUB, good_token(world))), settled=True)
    link = session.attach_sender("s", source=Source(address="x"), target=Target(address="hub"))
    peer.run()
    assert peer.is_attached(link)
    link.send(event(b"x"), settled=False)
    peer.run()
    assert [text for _, _, text in peer.outcomes(link)] == ["accepted"]


def test_the_error_condition_of_a_refused_token_is_named(peer: Peer) -> None:
    token = make_token(HUB, ROOT, "wrong", 2_000_000_000)
    answer = peer.request("$cbs", put_token(HUB, token))
    assert (answer.application_properties or {})["error-condition"] == Symbol("com.microsoft:auth-failed")

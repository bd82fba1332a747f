"""Tokens over the wire, as a scripted client puts them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.performatives import Attach, Begin, Detach, End, Transfer
from hubweir.amqp.types.values import Int, ULong
from hubweir.auth.shared_access_signature import make_token
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import KEY, ROOT, RawClient, status_of
from tests.conformance.test_raw_connection import EVENT, READER

pytestmark = pytest.mark.both_ways


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.start()


def audience(hub: str) -> str:
    return f"sb://localhost/{hub}"


@pytest.mark.eh(22)
@pytest.mark.sb(9, 10)
@pytest.mark.parametrize("message_id", [UUID(int=9), "text", ULong(7)])
def test_the_answer_carries_the_requests_id_and_status_202(client: RawClient, message_id: object) -> None:
    answer = client.put_token(audience("events"), message_id=message_id)
    assert answer.properties is not None
    assert answer.properties.correlation_id == message_id
    assert type(answer.properties.correlation_id) is type(message_id)
    said = answer.application_properties or {}
    assert type(said["status-code"]) is Int
    assert said["status-code"] == 202
    assert answer.body == ValueBody(None)


@pytest.mark.eh(23)
@pytest.mark.sb(8)
@pytest.mark.parametrize("way", ["target", "name", "nothing"])
def test_the_answer_finds_its_link(client: RawClient, way: str) -> None:
    client.receiver("$cbs", name="cbs-name", credit=5, target=Target(address="cbs-target"))
    sender = client.sender("$cbs")
    reply_to = {"target": "cbs-target", "name": "cbs-name", "nothing": None}[way]
    token = make_token(audience("events"), ROOT, KEY, int(time.time()) + 60)
    request = Message(
        properties=Properties(message_id="m", reply_to=reply_to),
        application_properties={
            "operation": "put-token",
            "type": "servicebus.windows.net:sastoken",
            "name": audience("events"),
        },
        body=ValueBody(token),
    )
    client.transfer(sender, encode_message(request))
    (answer,) = client.messages(1)
    assert status_of(answer)[0] == 202


@pytest.mark.eh(24)
@pytest.mark.sb(11)
@pytest.mark.parametrize(
    ("change", "start"),
    [
        ({"lifetime_s": -5}, "ExpiredToken: The token is expired. Expiration time:"),
        ({"key": "wrong"}, "InvalidSignature:"),
        ({"resource": "sb://localhost/two"}, "InvalidAudience:"),
    ],
)
def test_each_fault_has_its_words(client: RawClient, change: dict[str, object], start: str) -> None:
    code, text = status_of(client.put_token(audience("events"), **change))  # type: ignore[arg-type]
    assert code == 401
    assert text.startswith(start)


@pytest.mark.eh(28)
@pytest.mark.parametrize("scheme", ["sb", "amqp", "amqps", "http"])
@pytest.mark.parametrize("port", ["", ":5671"])
def test_a_hubs_token_covers_what_is_under_it(client: RawClient, scheme: str, port: str) -> None:
    token_of = f"{scheme}://LOCALHOST{port}/EVENTS"
    assert status_of(client.put_token("sb://localhost/events/partitions/1", resource=token_of))[0] == 202
    assert status_of(client.put_token("sb://localhost/events/ConsumerGroups/x", resource=token_of))[0] == 202
    assert status_of(client.put_token("sb://localhost/events2", resource=token_of))[0] == 401


@pytest.mark.sb(12)
@pytest.mark.parametrize("scheme", ["sb", "amqp", "amqps", "http", "https"])
@pytest.mark.parametrize("port", ["", ":5671"])
def test_audiences_of_a_queue_in_every_form_open_its_links(
    client: RawClient, queue: str, scheme: str, port: str
) -> None:
    """The token is signed for one form and put for another: what both name decides."""
    audience, signed = f"{scheme}://localhost{port}/{queue}", f"{scheme}://LOCALHOST{port}/{queue.upper()}/"
    assert client.refused(queue, sends=True).condition == "amqp:unauthorized-access"
    other = make_token(f"{signed[:-1]}-other", ROOT, KEY, int(time.time()) + 60)
    assert status_of(client.put_token(audience, token=other))[0] == 401
    assert status_of(client.put_token(f"{audience}/$management", resource=signed))[0] == 202
    assert client.refused(queue, sends=True).condition == "amqp:unauthorized-access"
    assert status_of(client.put_token(signed, resource=f"sb://localhost/{queue}"))[0] == 202
    assert isinstance(client.publish(client.sender(queue), EVENT).state, Accepted)
    client.receiver(queue.upper(), credit=1, rcv_settle_mode=1)
    assert client.messages(1)[0].body == DataBody((b"x",))


@pytest.mark.eh(29)
def test_a_namespace_token_covers_every_hub(client: RawClient) -> None:
    assert status_of(client.put_token("sb://localhost/"))[0] == 202
    for hub in ("events", "two", "one"):
        client.sender(hub)


@pytest.mark.eh(30)
@pytest.mark.sb(162)
def test_without_a_token_the_attach_is_refused_with_the_exact_text(client: RawClient) -> None:
    for sends, right in ((True, "Send"), (False, "Listen")):
        error = client.refused("events" if sends else READER.format("events"), sends=sends)
        assert error.condition == "amqp:unauthorized-access"
        assert error.description.startswith(
            f"Unauthorized access. '{right}' claim(s) are required to perform this operation"
        )


@pytest.mark.eh(31)
@pytest.mark.sb(161)
def test_one_sender_on_cbs(client: RawClient) -> None:
    first = client.sender("$cbs")
    assert client.refused("$cbs", sends=True).condition == "amqp:not-allowed"
    client.write(frame(Detach(handle=first, closed=True)))
    client.expect(Detach)
    client.sender("$cbs")


@pytest.mark.eh(31)
@pytest.mark.sb(161)
def test_one_sender_on_cbs_also_in_another_session(client: RawClient) -> None:
    client.sender("$cbs")
    client.write(frame(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100, handle_max=255), channel=1))
    other = client.expect_frame(Begin).channel
    client.attach("$cbs", sends=True, channel=1)
    answer = client.expect(Attach, channel=other)
    assert (answer.source, answer.target) == (None, None)
    error = client.expect(Detach, channel=other).error
    assert error is not None and error.condition == "amqp:not-allowed"
    # The end of its session ends the link, as a detach does.
    client.write(frame(End()))
    client.expect(End)
    client.attach("$cbs", sends=True, channel=1)
    assert client.expect(Attach, channel=other).target is not None


@pytest.mark.eh(31)
@pytest.mark.sb(161)
def test_the_same_audience_may_be_put_again(client: RawClient) -> None:
    for _ in range(3):
        assert status_of(client.put_token(audience("events")))[0] == 202


@pytest.mark.eh(32)
def test_a_link_ends_after_its_token_and_a_refreshed_one_does_not(doors: Doors) -> None:
    with doors.raw() as short, doors.raw() as long:
        for client in (short, long):
            client.start()
            assert status_of(client.put_token(audience("events"), lifetime_s=3))[0] == 202
            client.receiver(READER.format("events"), credit=1)
        assert status_of(long.put_token(audience("events"), lifetime_s=600))[0] == 202
        assert short.none_of(Detach, seconds=2.0)
        detach = short.expect(Detach, seconds=8)
        assert detach.error is not None
        assert detach.error.condition == "amqp:unauthorized-access"
        assert "expired" in detach.error.description
        assert long.none_of(Detach)


@pytest.mark.eh(33)
def test_a_signature_under_the_type_jwt_is_taken_as_one(client: RawClient) -> None:
    assert status_of(client.put_token(audience("events"), kind="jwt"))[0] == 202
    assert isinstance(client.publish(client.sender("events/Partitions/3"), EVENT).state, Accepted)


@pytest.mark.eh(34)
def test_an_answer_waits_for_credit(client: RawClient) -> None:
    receiver = client.receiver("$cbs")
    sender = client.sender("$cbs")
    token = make_token(audience("events"), ROOT, KEY, int(time.time()) + 60)
    properties = {"operation": "put-token", "type": "jwt", "name": audience("events")}
    client.transfer(sender, encode_message(Message(application_properties=dict(properties), body=ValueBody(token))))
    assert client.none_of(Transfer)
    client.grant(receiver, 1)
    (answer,) = client.messages(1)
    assert status_of(answer)[0] == 202


@pytest.mark.eh(35, 36)
@pytest.mark.parametrize(
    ("address", "sends"),
    [
        ("events", True),
        ("/events", True),
        ("amqps://localhost:5671/EVENTS", True),
        ("events/partitions/2", True),
        ("EVENTS/consumergroups/$DEFAULT/partitions/0", False),
        ("/events/ConsumerGroups/%24Default/Partitions/0", False),
        ("amqps://127.0.0.1/events/ConsumerGroups/$Default/Partitions/0", False),
    ],
)
def test_every_form_of_an_address_resolves_and_is_echoed(doors: Doors, address: str, sends: bool) -> None:
    with doors.raw() as client:
        client.trusted()
        client.attach(address, sends=sends)
        answer = client.expect(Attach)
        there = answer.target if sends else answer.source
        assert there is not None
        assert there.address == address
        assert isinstance(answer.source, Source)


@pytest.mark.eh(37)
@pytest.mark.parametrize(
    ("address", "sends", "condition", "needle"),
    [
        ("missing", True, "amqp:not-found", "The messaging entity"),
        (READER.format("missing"), False, "amqp:not-found", "could not be found"),
        ("events/ConsumerGroups/missing/Partitions/0", False, "amqp:not-found", "could not be found"),
        *(
            (
                f"events/Partitions/{partition}",
                True,
                "com.microsoft:argument-out-of-range",
                "The specified partition is invalid for an EventHub partition sender or receiver",
            )
            for partition in ("XYZ", "-1", "1000", "-")
        ),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    doors: Doors, address: str, sends: bool, condition: str, needle: str
) -> None:
    with doors.raw() as client:
        client.trusted()
        error = client.refused(address, sends=sends)
        assert error.condition == condition
        assert needle in error.description
        client.sender("events")

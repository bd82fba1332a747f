"""Attacks 56 to 71: what a connection has not proved, and what belongs to another one."""

from __future__ import annotations

import socket
import time

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.messaging.terminus import Target as LinkTarget
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.transport.performatives import Attach, Begin, Close, Detach, End, Open, Transfer
from hubweir.amqp.types.values import Described, Long, Symbol, Timestamp, ULong
from hubweir.namespace.rights import Rights
from hubweir.testing.frames import frame, sasl_start
from tests.attacks.table import attack
from tests.attacks.target import KEY, UNAUTHORIZED, Target, build, event, resource
from tests.conformance.raw_client import ROOT, status_of

READER = "hub1/ConsumerGroups/$Default/Partitions/0"
UNCLAIMED_S = 3  # the setting unauthorized_connection_ms of the service under attack


def put_request(token: str, audience: str = "hub1", reply_to: str | None = None) -> bytes:
    said = {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": f"sb://localhost/{audience}"}
    properties = Properties(message_id="m", reply_to=reply_to)
    return encode_message(Message(properties=properties, application_properties=dict(said), body=ValueBody(token)))


@attack(56, "attach before put-token")
def attach_first(target: Target) -> None:
    with target.client() as client:
        for address, sends in (("hub1", True), ("hub1/Partitions/0", True), (READER, False)):
            assert client.refused(address, sends=sends).condition == UNAUTHORIZED
        assert target.put(client, build())[0] == 202
        client.sender("hub1")
    assert target.https(None) == 401


@attack(57, "put-token, attach and transfer in one segment")
def one_segment(target: Target) -> None:
    """Each is judged in its turn: after a good token all is taken, after a bad one nothing."""
    for token, stored in ((build(key="wrong"), 0), (build(), 1)):
        before = target.stored()
        with target.client() as client:
            client.receiver("$cbs", credit=5)
            cbs = client.sender("$cbs")
            attach = Attach(
                name="pipelined", handle=9, role=False, source=Source(address="a"), target=LinkTarget(address="hub1"),
                initial_delivery_count=0,
            )  # fmt: skip
            client.write(
                frame(client.transfer_of(cbs, 0, settled=True), put_request(token)),
                frame(attach),
                frame(client.transfer_of(9, 1), event()),
            )
            (answer,) = client.messages(1)
            assert status_of(answer)[0] == (202 if stored else 401)
            if stored:
                assert isinstance(client.outcome(1).state, Accepted)
            else:
                assert client.expect(Detach).error.condition == UNAUTHORIZED
        assert target.stored() == before + stored


@attack(58, "a token put on another connection")
def another_connection(target: Target) -> None:
    with target.client() as mine, target.client() as other:
        assert target.put(other, build())[0] == 202
        assert mine.refused("hub1", sends=True).condition == UNAUTHORIZED
        other.sender("hub1")


@attack(58, "a token of another request on the same HTTP connection")
def another_request(target: Target) -> None:
    """Each request proves itself: a good one before it, or pipelined behind it, lends it nothing."""
    good, bad = f"Authorization: {build()}\r\n", f"Authorization: {build(key='wrong')}\r\n"
    before = target.stored()
    for proofs, expected in (((good, "", bad, good), [201, 401, 401, 201]), ((bad, good), [401, 201])):
        assert target.pipelined(proofs) == expected
    assert target.stored() == before + 3


@attack(59, "a token for one hub, an attach to another")
def another_hub(target: Target) -> None:
    with target.client() as client:
        assert target.put(client, build())[0] == 202
        assert client.refused("hub10", sends=True).condition == UNAUTHORIZED
        client.sender("hub1")
    assert target.https(build(), "hub10/messages") == 401
    assert target.https(build()) == 201


@attack(60, "a bad token after a good one")
def bad_after_good(target: Target) -> None:
    """The bad one adds nothing and takes nothing away."""
    with target.client() as client:
        assert target.put(client, build())[0] == 202
        link = client.sender("hub1")
        assert target.put(client, build(key="wrong"))[0] == 401
        assert target.put(client, build(resource(""), key="wrong"), "")[0] == 401
        assert isinstance(client.publish(link, event()).state, Accepted)
        client.sender("hub1/Partitions/0")
        assert client.refused("hub10", sends=True).condition == UNAUTHORIZED


@attack(61, "no claim for the time that a connection has")
def unclaimed(target: Target) -> None:
    with target.client() as idle, target.client() as claimed:
        assert target.put(claimed, build())[0] == 202
        claimed.sender("hub1")
        started = time.monotonic()
        idle.expect(Close, seconds=UNCLAIMED_S + 5)
        assert time.monotonic() - started > UNCLAIMED_S / 2
        assert claimed.none_of(Close)
        claimed.sender("hub1")


@attack(62, "SASL left out proves nothing")
def no_sasl(target: Target) -> None:
    with target.dial() as client:
        client.write(
            AMQP_HEADER,
            frame(Open(container_id="raw", hostname="localhost")),
            frame(Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10, handle_max=255)),
        )
        assert client.read_exactly(8) == AMQP_HEADER
        client.expect(Begin)
        assert client.refused("hub1", sends=True).condition == UNAUTHORIZED
        assert target.put(client, build())[0] == 202
        client.sender("hub1")


@attack(62, "SASL twice")
def sasl_twice(target: Target) -> None:
    with target.dial() as client:
        client.write(sasl_start("ANONYMOUS", b""))
        assert client.sasl_outcome() == 0
        client.write(sasl_start("PLAIN", f"\0{ROOT}\0{KEY}".encode()))
        assert client.is_closed_by_server()
    with target.client(trusted=True) as client:
        client.sender("hub1")


@attack(62, "an unknown mechanism, EXTERNAL, PLAIN with a wrong key or another identity")
def bad_sasl(target: Target) -> None:
    for mechanism, response in (
        ("XOAUTH2", b""),
        ("EXTERNAL", b""),
        ("PLAIN", f"\0{ROOT}\0wrong".encode()),
        ("PLAIN", f"\0{ROOT}\0".encode()),
        ("PLAIN", f"other\0{ROOT}\0{KEY}".encode()),
        ("PLAIN", f"\0nobody\0{KEY}".encode()),
        ("PLAIN", b""),
    ):
        with target.dial() as client:
            client.write(sasl_start(mechanism, response))
            assert client.sasl_outcome() == 1, (mechanism, response)
            assert client.is_closed_by_server()
    for identity in ("", ROOT):  # over loopback; how PLAIN fares from elsewhere without TLS is below
        with target.dial() as client:
            client.start("PLAIN", f"{identity}\0{ROOT}\0{KEY}".encode())
            client.sender("hub1")


@attack(62, "PLAIN without TLS from another machine")
def plain_in_clear(target: Target) -> None:
    """Nobody here has another machine: the service is told that this peer's address is of one."""
    proof = f"\0{ROOT}\0{KEY}".encode()
    with target.from_elsewhere(), target.dial() as client:
        client.write(sasl_start("PLAIN", proof))
        assert client.sasl_outcome() == 1
        assert client.is_closed_by_server()
    with target.from_elsewhere(), target.dial(tls=True) as client:
        client.start("PLAIN", proof)
        client.sender("hub1")
    with target.from_elsewhere(), target.client() as client:  # a token shows no key
        assert target.put(client, build())[0] == 202
    with target.dial() as client:
        client.start("PLAIN", proof)


@attack(63, "frames before open; begin and attach out of range")
def out_of_range(target: Target) -> None:
    begin = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10, handle_max=255)
    attach = Attach(name="n", handle=0, role=False, source=Source(address="a"), target=LinkTarget(address="hub1"),
                    initial_delivery_count=0)  # fmt: skip
    before = target.stored()
    for first in (begin, attach, Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), End()):
        with target.dial() as client:
            client.write(sasl_start("PLAIN", f"\0{ROOT}\0{KEY}".encode()))
            assert client.sasl_outcome() == 0
            client.write(AMQP_HEADER, frame(first))
            assert client.is_closed_by_server(), first
    high = Attach(name="high", handle=2**32 - 1, role=False, source=Source(address="a"),
                  target=LinkTarget(address="hub1"), initial_delivery_count=0)  # fmt: skip
    for wrong, channel in ((begin, 65_535), (high, 0), (attach, 77), (Transfer(handle=200, delivery_id=0), 0)):
        with target.client(trusted=True) as client:
            client.write(frame(wrong, channel=channel))
            came = client.expect((End, Close))  # type: ignore[arg-type]
            assert came.error is not None
    assert target.stored() == before
    with target.client(trusted=True) as client:
        client.sender("hub1")


@attack(64, "reply-to of another's $cbs or management link")
def reply_elsewhere(target: Target) -> None:
    """Both have a link of the same name and address: each answer stays on the connection that asked."""
    with target.client(trusted=True) as victim, target.client() as thief:
        for node in ("$cbs", "$management"):
            victim.receiver(node, name=f"replies-{node}", credit=5, target=LinkTarget(address=f"here-{node}"))
        ask = thief.sender("$cbs")
        thief.receiver("$cbs", credit=5, name="own", target=LinkTarget(address="own"))
        for reply_to in ("here-$cbs", "replies-$cbs", "here-$management"):
            thief.transfer(ask, put_request(build(), reply_to=reply_to), settled=True)
        assert victim.none_of(Transfer)
        thief.transfer(ask, put_request(build(), reply_to="own"), settled=True)
        answers = [status_of(answer)[0] for answer in thief.messages(1)]
        assert set(answers) == {202}
        assert victim.none_of(Transfer)


@attack(67, "the name of another identity's link")
def same_name(target: Target) -> None:
    """A link belongs to its connection: a stranger neither steals it nor is let in by its name."""
    with target.client(trusted=True) as owner, target.client() as thief:
        link = owner.sender("hub1", name="the-link")
        assert thief.refused("hub1", sends=True, name="the-link").condition == UNAUTHORIZED
        assert isinstance(owner.publish(link, event()).state, Accepted)
        assert target.put(thief, build())[0] == 202
        thief.sender("hub1", name="the-link")
        assert owner.none_of(Detach)
        assert isinstance(owner.publish(link, event()).state, Accepted)


@attack(68, "a forged map of unsettled deliveries")
def forged_resume(target: Target) -> None:
    """Nothing is resumed: what the map claims to have been accepted or to be under way is not stored."""
    before = target.stored()
    for state in (None, Described(ULong(0x24), [])):  # still under way; accepted
        with target.client(trusted=True) as client:
            handle = client.attach("hub1/Partitions/0", sends=True, unsettled={b"forged": state})
            answer = client.expect(Attach)
            assert not answer.unsettled
            if answer.target is not None:
                assert isinstance(client.publish(handle, event()).state, Accepted)
                before += 1
    assert target.stored() == before
    with target.client(trusted=True) as client:
        assert isinstance(client.publish(client.sender("hub1/Partitions/0"), event()).state, Accepted)


@attack(69, "sequence number, offset, time and publisher set by the client")
def forged_annotations(target: Target) -> None:
    forged = {
        Symbol("x-opt-sequence-number"): Long(1 << 60),
        Symbol("x-opt-offset"): "999999",
        Symbol("x-opt-enqueued-time"): Timestamp(1),
        Symbol("x-opt-publisher"): "boss",
    }
    with target.client(trusted=True) as client:
        number = target.stored()
        assert isinstance(client.publish(client.sender("hub1"), event(message_annotations=forged)).state, Accepted)
        selector = f"amqp.annotation.x-opt-sequence-number > '{number - 1}'"
        client.receiver(READER, credit=1, selector=selector)
        (message,) = client.messages(1)
    said = message.message_annotations or {}
    assert said[Symbol("x-opt-sequence-number")] == number
    assert said[Symbol("x-opt-offset")] != "999999"
    assert int(str(int(said[Symbol("x-opt-enqueued-time")]))) > 1_700_000_000_000
    assert said.get(Symbol("x-opt-publisher")) != "boss"


@attack(71, "a management request that names another entity")
def another_entity(target: Target) -> None:
    """The link's address gives nothing: each request is held against the claims for what it names."""
    with target.rule(Rights.ALL) as rule, target.client() as client:
        assert target.put(client, build(skn=rule, key="its key"))[0] == 202
        assert target.management(client, "READ", "eventhub", "hub1") == 200
        for operation, kind, name, more in (
            ("READ", "eventhub", "hub10", {}),
            ("READ", "partition", "hub10", {"partition": "0"}),
            ("DELETE", "eventhub", "hub10", {}),
            ("CREATE", "consumergroup", "hub10", {"group": "g"}),
            ("LIST", "authorizationrule", "hub10", {}),
            ("READKEYS", "authorizationrule", "", {"rule": ROOT}),
            ("READ", "eventhub", "hub1/../hub10", {}),
        ):
            assert target.management(client, operation, kind, name, **more) == 401, (operation, name)
        said = {"operation": "READ", "type": "com.microsoft:eventhub", "name": "hub10"}
        request = Message(properties=Properties(message_id="m"), application_properties=dict(said))
        assert status_of(client.request("hub1/$management", request))[0] == 401
    assert target.https(build(skn=rule, key="its key"), "hub10", method="GET", body=b"") == 401
    assert target.https(build(), "hub1", method="GET", body=b"") == 200


@attack(63, "half a frame header, and no more")
def half_open(target: Target) -> None:
    with socket.create_connection((target.namespace.host, target.namespace.port), 5) as silent:
        silent.sendall(SASL_HEADER[:4])
        with target.client(trusted=True) as client:
            client.sender("hub1")

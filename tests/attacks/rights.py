"""Attacks 23 to 25 and 45 to 55: expiry and rights, while links stand and requests come."""

from __future__ import annotations

import time
from dataclasses import replace

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.performatives import Detach
from hubweir.namespace.rights import Rights
from hubweir.testing.frames import frame
from tests.attacks.table import attack
from tests.attacks.target import LATE, UNAUTHORIZED, Target, build, event, resource
from tests.conformance.raw_client import RawClient

READER = "hub1/ConsumerGroups/$Default/Partitions/0"
HOUR_MS = 3_600_000


def ends(client: RawClient, *, seconds: float = 5.0) -> None:
    """The one link of this client ends within the 5 s that every change has."""
    detach = client.expect(Detach, seconds=seconds)
    assert detach.error is not None
    assert detach.error.condition == UNAUTHORIZED


@attack(23, "runs out while attached, in the middle of a delivery")
def runs_out(target: Target) -> None:
    with target.client() as client:
        assert target.put(client, build(se=str(int(time.time()) + 60)))[0] == 202
        link = client.sender("hub1/Partitions/0")
        assert isinstance(client.publish(link, event()).state, Accepted)
        before, whole = target.stored(), event(b"late" * 10)
        try:
            with target.clock(HOUR_MS):
                last = client.transfer_of(link, 7)
                client.write(frame(replace(last, more=True), whole[:10]), frame(last, whole[10:]))
                ends(client)
                assert target.put(client, build(se=str(int(time.time()) + 60)))[1].startswith("ExpiredToken:")
                assert target.https(build(se=str(int(time.time()) + 60))) == 401
            assert target.stored() == before
        finally:
            target.forget_time()
        assert target.put(client, build())[0] == 202


@attack(24, "the clock set back after the end")
def clock_set_back(target: Target) -> None:
    token = build(se=str(int(time.time()) + 60))
    target.refuses(build(key="wrong"), token, "InvalidSignature:")
    try:
        with target.clock(HOUR_MS):
            target.refuses(token, build(), "ExpiredToken:")
        target.refuses(token, build(), "ExpiredToken:")
    finally:
        target.forget_time()
    assert target.https(token) == 201


@attack(25, "a rule deleted and made again under its name")
def made_again(target: Target) -> None:
    with target.rule(Rights.SEND) as rule, target.client() as client:
        before, after = build(skn=rule, key="its key"), build(skn=rule, key="another key")
        assert target.put(client, before)[0] == 202
        client.sender("hub1")
        target.change(lambda done: target.gateway.keeper.change_rules(None, lambda level: level.remove(rule), done))
        ends(client)
        target.refuses(before, build(), "InvalidSignature:")
        target.set_rule(rule, Rights.SEND, key="another key")
        target.refuses(before, after, "InvalidSignature:")


@attack(45, "a listen token sends")
def listener_sends(target: Target) -> None:
    with target.rule(Rights.LISTEN) as listen, target.rule(Rights.SEND) as send, target.client() as client:
        before = target.stored()
        assert target.put(client, build(skn=listen, key="its key"))[0] == 202
        for address in ("hub1", "hub1/Partitions/0", "hub1/Publishers/p"):
            assert client.refused(address, sends=True).condition == UNAUTHORIZED
        client.receiver(READER)
        assert target.https(build(skn=listen, key="its key")) == 401
        assert target.stored() == before
        assert target.https(build(skn=send, key="its key")) == 201


@attack(46, "a send token receives")
def sender_receives(target: Target) -> None:
    with target.rule(Rights.SEND) as send, target.client() as client:
        assert target.put(client, build(skn=send, key="its key"))[0] == 202
        assert client.refused(READER, sends=False).condition == UNAUTHORIZED
        client.sender("hub1")
        # HTTP reads no events; what it tells of a hub and its groups is for who manages.
        token = build(resource(""), skn=send, key="its key")
        for path in ("hub1", "hub1/consumergroups/mine", "hub1/consumergroups", "$Resources/Eventhubs"):
            assert target.https(token, path, method="GET", body=b"") == 401, path
        assert target.https(token) == 201


@attack(47, "either of them manages")
def managed_without_right(target: Target) -> None:
    both = Rights.SEND | Rights.LISTEN
    with target.rule(both) as rule, target.client() as client:
        token = build(resource(""), skn=rule, key="its key")
        assert target.put(client, token, "")[0] == 202
        for operation, kind, more in (
            ("CREATE", "eventhub", {}),
            ("UPDATE", "eventhub", {}),
            ("DELETE", "eventhub", {}),
            ("LIST", "eventhub", {}),
            ("CREATE", "consumergroup", {"group": "g"}),
            ("LIST", "authorizationrule", {}),
            ("READKEYS", "authorizationrule", {"rule": "both"}),
            ("CREATE", "authorizationrule", {"rule": "r"}),
        ):
            assert target.management(client, operation, kind, "hub1", **more) == 401, operation
        assert target.management(client, "READ", "eventhub", "hub1") == 200
        for method, path in (("PUT", "hub77"), ("DELETE", "hub1"), ("GET", "hub1"), ("GET", "$Resources/Eventhubs")):
            assert target.https(token, path, method=method, body=b"") == 401
    assert target.https(build(resource("")), "hub1", method="GET", body=b"") == 200
    with target.client(trusted=True) as client:
        assert target.management(client, "LIST", "authorizationrule", "hub1") == 200


@attack(48, "one name at two levels: each key only at its own")
def two_levels(target: Target) -> None:
    """The hub's rule `both` sends; the namespace's does everything, on other hubs."""
    hub, namespace = build(skn="both", key="hub key"), build(resource("hub10"), skn="both", key="namespace key")
    target.opens(hub, "hub1", "hub1")
    target.opens(namespace, "hub10", "hub10")
    with target.client() as client:
        assert target.put(client, hub)[0] == 202
        assert client.refused(READER, sends=False).condition == UNAUTHORIZED
    target.refuses(build(resource("hub10"), skn="both", key="hub key"), hub, "InvalidSignature:")


@attack(49, "rights cut while attached")
def cut(target: Target) -> None:
    with target.rule(Rights.SEND | Rights.LISTEN) as rule, target.client() as sends, target.client() as receives:
        token = build(skn=rule, key="its key")
        for client in (sends, receives):
            assert target.put(client, token)[0] == 202
        sends.sender("hub1")
        receives.receiver(READER)
        target.set_rule(rule, Rights.LISTEN)
        ends(sends)
        assert sends.refused("hub1", sends=True).condition == UNAUTHORIZED
        assert receives.none_of(Detach)
        assert target.https(token) == 401
        target.set_rule(rule, Rights.SEND)
        ends(receives)
        assert target.https(token) == 201


@attack(50, "the old key after its renewal, while the secondary is still good")
def old_key(target: Target) -> None:
    with (
        target.rule(Rights.SEND, hub="hub1", secondary="second key") as rule,
        target.client() as first,
        target.client() as second,
    ):
        old, other = build(skn=rule, key="its key"), build(skn=rule, key="second key")
        assert target.put(first, old)[0] == target.put(second, other)[0] == 202
        first.sender("hub1")
        link = second.sender("hub1")
        with target.client(trusted=True) as operator:
            body = {"key": "primary", "value": "new key"}
            assert target.management(operator, "RENEWKEY", "authorizationrule", "hub1", body, rule=rule) == 200
        ends(first)
        assert isinstance(second.publish(link, event()).state, Accepted)
        target.refuses(old, other, "InvalidSignature:")
        target.refuses(old, build(skn=rule, key="new key"), "InvalidSignature:")


@attack(53, "an unknown rule told from a bad signature by its text")
@attack(54, "a signature that is right in front told from one that is not")
def told_apart(target: Target) -> None:
    """By time: signatures are compared by hmac.compare_digest, as often for a rule that is not there (unit tests)."""
    good = build()
    signature = good.split("sig=")[1].split("&")[0]
    near = good.replace(signature, signature[:30] + ("A" if signature[30] != "A" else "B") + signature[31:])
    with target.client() as client:
        answers = {
            target.put(client, token)[1].partition(", TrackingId:")[0]
            for token in (near, build(key="wrong"), build(skn="nobody"), build(skn="x", key="y"))
        }
        assert answers == {"InvalidSignature: The token has an invalid signature."}
        assert target.put(client, good)[0] == 202
    for token in (near, build(key="wrong"), build(skn="nobody"), build(skn="x", key="y")):
        assert target.https(token) == 401
    assert target.https(good) == 201


@attack(55, "an entity that is missing told apart without a good token")
def existence(target: Target) -> None:
    """Only who holds a good token that covers it is told that it is not there."""
    with target.client() as client:
        for hub in ("hub1", "absent"):
            token = build(resource(hub), key="wrong")
            said = target.put(client, token, hub)[1].partition(", TrackingId:")[0]
            assert said == "InvalidSignature: The token has an invalid signature."
            error = client.refused(hub, sends=True)
            assert error.condition == UNAUTHORIZED
            assert target.management(client, "READ", "eventhub", hub) == 401
            assert target.https(token, f"{hub}/messages") == target.https(None, f"{hub}/messages") == 401
        code, text = target.put(client, build(resource("absent")), "absent")
        assert (code, "could not be found" in text) == (404, True)
        assert target.put(client, build(resource(""), se=str(LATE)), "hub1")[0] == 202
    assert target.https(build(resource("absent")), "absent/messages") == 404

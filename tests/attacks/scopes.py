"""Attacks 26 to 44: a good token for one thing, shown for another; and names made to be taken for others."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.transport.performatives import Detach
from hubweir.amqp.types.values import Symbol
from hubweir.namespace.changes import EntityChange
from hubweir.namespace.event_hub_changes import restore_publisher, revoke_publisher
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rights import Rights
from tests.attacks.table import attack
from tests.attacks.target import UNAUTHORIZED, Target, build, event, resource

HUB1 = build(resource("hub1"))
READER = "hub1/ConsumerGroups/{}/Partitions/0"


@attack(26, "/hub1 on /hub10, /hub, /hub1x and the namespace")
def neighbours(target: Target) -> None:
    target.opens(HUB1, "hub1", "hub1")
    for other in ("hub10", "hub", "hub1x"):
        target.misses(HUB1, other, other)
        assert target.https(HUB1, f"{other}/messages") == 401
        assert target.https(build(resource(other)), f"{other}/messages") == 201
    target.misses(HUB1, "", "hub10")
    assert target.https(HUB1, "$Resources/Eventhubs", method="GET", body=b"") == 401
    assert target.https(build(resource("")), "$Resources/Eventhubs", method="GET", body=b"") == 200


@attack(27, "a trailing slash is the same resource")
def trailing_slash(target: Target) -> None:
    target.opens(build(resource("hub1/")), "hub1/", "hub1")
    target.misses(build(resource("hub1/")), "hub10", "hub10")
    target.misses(HUB1, "hub10//hub1", "hub10")
    assert target.https(build(resource("hub1/"))) == 201
    assert target.https(build(resource("hub1/")), "hub10/messages") == 401
    for path in ("hub10//hub1/messages", "/hub10/messages", "hub1//messages"):
        assert target.https(HUB1, path) in (400, 401, 404), path


@attack(28, "another consumer group")
def other_group(target: Target) -> None:
    token = build(resource("hub1/consumergroups/mine"))
    target.opens(token, "hub1/consumergroups/mine", READER.format("mine"), sends=False)
    for other in ("$Default", "mine2"):
        target.misses(token, f"hub1/consumergroups/{other}", READER.format(other), sends=False)
        assert target.https(token, f"hub1/consumergroups/{other}", method="GET", body=b"") == 401
    assert target.https(token, "hub1/consumergroups/mine", method="GET", body=b"") == 200


@attack(29, "twins of the host by suffix and prefix")
def host_twins(target: Target) -> None:
    with target.own_hosts("localhost", "127.0.0.1", "ns.example"):
        target.opens(build(resource("hub1", "NS.example:5671")), "hub1", "hub1")
        for host in ("ns.example.evil.test", "evil-ns.example", "xns.example", "ns.exampl", "example"):
            token = build(resource("hub1", host))
            target.refuses(token, build(resource("hub1", "ns.example")), "InvalidAudience:")


@attack(30, "a port is no part of the resource")
def port(target: Target) -> None:
    target.opens(build(resource("hub1", "localhost:5671")), "hub1", "hub1")
    target.misses(build(resource("hub1", "localhost:5671")), "hub10", "hub10")
    assert target.https(build(resource("hub1", "localhost:5671"))) == 201
    assert target.https(build(resource("hub1", "localhost:5671")), "hub10/messages") == 401


@attack(31, "query and fragment in an audience")
@attack(32, "dots in an audience")
@attack(33, "encoded dots, slash and backslash in an audience")
@attack(34, "an audience encoded twice")
def odd_audiences(target: Target) -> None:
    target.opens(HUB1, "hub1/partitions/0", "hub1/Partitions/0")
    for path in (
        "hub1?x", "hub1#x", "hub1/../hub10", "hub1/./x", "hub1/%2e%2e/hub10", "hub1%2f..%2fhub10", "hub1%5c..%5chub10",
        "%2568ub1",
    ):  # fmt: skip
        target.misses(HUB1, path, "hub10")
        # As an address it leads nowhere else: whoever may do everything finds nothing there.
        with target.client(trusted=True) as client:
            assert client.refused(path, sends=True).condition == "amqp:not-found", path
            client.sender("hub1")


@attack(31, "query and fragment in the path of a request")
def odd_queries(target: Target) -> None:
    """What stands behind the path chooses no other hub, and no other method."""
    before = target.stored("hub10")
    for path in ("hub10/messages?x=/hub1/messages", "hub10/messages#/hub1/messages", "?/hub1/messages", "hub10?hub1"):
        assert target.https(HUB1, path) in (400, 401, 404, 405), path
    assert target.stored("hub10") == before
    assert target.https(HUB1, "hub1/messages?api-version=2014-01&x=/hub10/messages") == 201
    assert target.stored("hub10") == before


@attack(33, "encoded dots and slashes in the path of a request")
@attack(34, "the path of a request encoded twice")
def odd_paths(target: Target) -> None:
    for path in (
        "%2568ub1/messages",
        "hub1%252f..%252fhub10/messages",
        "hub1/../hub10/messages",
        "hub1/%2e%2e/hub10/messages",
        "hub1%2f..%2fhub10/messages",
        "hub1%2f%2e%2e%2fhub10%2fmessages",
        "hub10%2fmessages",
        "hub10%2f/messages",
        "hub10%5c..%5chub1/messages",
    ):
        assert target.https(HUB1, path) in (400, 401, 404), path
    assert target.https(HUB1, "hub1%2fmessages") == 201  # an encoded slash is a slash: one path, one meaning
    assert target.https(HUB1) == 201


@attack(35, "letters that fold to others, composed and decomposed")
def twins_of_letters(target: Target) -> None:
    """Dotless i, long s, Kelvin sign; a umlaut as one character and as two."""
    for mine, others in (
        ("publishers/\u00fc", ("publishers/u\u0308", "publishers/\u00dc", "publishers/u")),
        ("publishers/kis", ("publishers/\u212ais", "publishers/k\u0131s", "publishers/ki\u017f")),
    ):
        token = build(resource(f"hub1/{mine}"))
        target.opens(token, f"hub1/{quote(mine)}", f"hub1/{mine}")
        for other in others:
            target.misses(token, f"hub1/{quote(other)}", f"hub1/{other}")
            assert target.https(token, f"hub1/{quote(other)}/messages") == 401
        assert target.https(token, f"hub1/{quote(mine)}/messages") == 201


@attack(36, "a plus sign for a space")
def plus(target: Target) -> None:
    spaced, plussed = build(resource("hub1/publishers/a b")), build("sb://localhost/hub1/publishers/a+b")
    target.opens(spaced, "hub1/publishers/a%20b", "hub1/Publishers/a b")
    target.misses(spaced, "hub1/publishers/a+b", "hub1/Publishers/a+b")
    target.misses(plussed, "hub1/publishers/a%20b", "hub1/Publishers/a b")
    assert target.https(plussed, "hub1/publishers/a%20b/messages") == 401
    assert target.https(plussed, "hub1/publishers/a+b/messages") == 201


@attack(38, "signed in another case is the same resource, in any case shown")
def case(target: Target) -> None:
    token = build(resource("HUB1"))
    target.opens(token, "hub1", "Hub1")
    target.misses(token, "HUB10", "HUB10")
    assert target.https(token, "hub1/messages") == target.https(token, "Hub1/Messages") == 201
    assert target.https(token, "HUB10/messages") == 401


@attack(39, "publisher a as b, as ab, on the hub and on a partition")
def other_publisher(target: Target) -> None:
    token = build(resource("hub1/publishers/a"))
    target.opens(token, "hub1/publishers/a", "hub1/Publishers/A")
    assert target.https(token, "hub1/publishers/a/messages") == 201
    for path in ("hub1/publishers/b", "hub1/publishers/ab", "hub1/publishers/a%20", "hub1", "hub1/partitions/0"):
        target.misses(token, path, path)
        assert target.https(token, f"{path}/messages") == 401


@attack(40, "a publisher with another partition key")
def other_key(target: Target) -> None:
    with target.client() as client:
        assert target.put(client, build(resource("hub1/publishers/a")), "hub1/publishers/a")[0] == 202
        link = client.sender("hub1/Publishers/a")
        before = target.stored()
        for key in ("b", "ab"):
            named = event(message_annotations={Symbol("x-opt-partition-key"): key})
            assert isinstance(client.publish(link, named).state, Rejected)
        assert target.stored() == before
        same = event(message_annotations={Symbol("x-opt-partition-key"): "a"})
        assert isinstance(client.publish(link, same).state, Accepted)
    token = build(resource("hub1/publishers/a"))
    assert target.https(token, "hub1/publishers/a/messages", more='BrokerProperties: {"PartitionKey":"b"}\r\n') == 400
    assert target.https(token, "hub1/publishers/a/messages", more='BrokerProperties: {"PartitionKey":"a"}\r\n') == 201


@attack(41, "a revoked publisher keeps its link")
def revoked(target: Target) -> None:
    token = build(resource("hub1/publishers/revoked"))
    target.opens(token, "hub1/publishers/revoked", "hub1/Publishers/revoked")

    def change_hub(change: EntityChange[EventHubDescription]) -> None:
        target.change(lambda done: target.gateway.keeper.change("hub1", EventHubDescription, change, done))

    with target.client() as client:
        assert target.put(client, build(resource("hub1/publishers/")), "hub1/publishers/x")[0] == 202
        assert target.put(client, token, "hub1/publishers/revoked")[0] == 202
        other = client.sender("hub1/Publishers/x")
        client.sender("hub1/Publishers/revoked")
        change_hub(partial(revoke_publisher, publisher="REVOKED"))
        try:
            detach = client.expect(Detach)
            assert detach.error is not None
            assert detach.error.condition == UNAUTHORIZED
            assert client.refused("hub1/Publishers/revoked", sends=True).condition == UNAUTHORIZED
            assert target.https(token, "hub1/publishers/revoked/messages") in (401, 403)
            assert isinstance(client.publish(other, event()).state, Accepted)
        finally:
            change_hub(partial(restore_publisher, publisher="revoked"))
        client.sender("hub1/Publishers/revoked")
    assert target.https(token, "hub1/publishers/revoked/messages") == 201


@attack(44, "an entity named like a node of the system, or with what no name has")
def odd_names(target: Target) -> None:
    names = (
        "$cbs", "$management", "hub1/$management", "..", "a/../b", "a\0b", "a" * 300, "hub1/partitions/0", "a\u2215b",
        "a\\b", "hub1/consumergroups/x", "", ".", "/", "a//b",
    )  # fmt: skip
    with target.client(trusted=True) as client:
        before = [hub.name for hub in target.gateway.management.hubs()]
        for name in names:
            code = target.management(client, "CREATE", "eventhub", name)
            assert 400 <= code < 500, name
            if not name.startswith("hub1/"):  # that is the path of a group or a partition
                assert target.https(build(resource("")), quote(name, safe="/"), method="PUT", body=b"") >= 400, name
        assert [hub.name for hub in target.gateway.management.hubs()] == before
        assert target.management(client, "CREATE", "eventhub", "plain.name-1") == 201
        assert target.management(client, "DELETE", "eventhub", "plain.name-1") == 200


@attack(44, "a rule or a group with what no name has")
def odd_parts(target: Target) -> None:
    with target.client(trusted=True) as client:
        for name in ("..", "a/b", "a\0b", "a" * 300, "a\u2215b", "$x\\"):
            assert target.management(client, "CREATE", "consumergroup", "hub1", group=name) == 400, name
            # Over HTTP what stands before a slash is a path; the rest is one name, and none of these.
            path = f"hub1/consumergroups/{quote(name, safe='')}"
            assert target.https(build(resource("")), path, method="PUT", body=b"") in (400, 404), name
        for name in ("a\0b", "a" * 300, "a\r\nb"):
            body = {"rights": ["Send"]}
            assert target.management(client, "CREATE", "authorizationrule", "hub1", body, rule=name) == 400, name
        assert (
            target.management(client, "CREATE", "authorizationrule", "hub1", {"rights": ["Send"]}, rule="fine") == 201
        )
        assert target.management(client, "DELETE", "authorizationrule", "hub1", rule="fine") == 200
    with target.rule(Rights.SEND, name="fine"):
        target.opens(build(skn="fine", key="its key"), "hub1", "hub1")

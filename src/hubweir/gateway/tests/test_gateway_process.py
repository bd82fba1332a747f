"""Which namespace of a process a peer means: by host, else by its first token; and what the namespaces share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.further_namespace import further_namespace, peer_of
from hubweir.gateway.amqp.tests.world import KEY, ROOT, World, event
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.host_names import divide
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DEVELOPMENT

HOSTS = divide({"plain": ["plain.example"], "large": ["large.example"]})


class Two:
    """A process with two namespaces: the default one, plain, and large, whose rule `sender` has a key of its own."""

    def __init__(self, **settings: Any) -> None:
        self.world = World(hubs={"hub": 1}, settings=GatewaySettings(namespace="plain", hosts=HOSTS["plain"]))
        self.plain = self.world.gateway
        self.large: Gateway = further_namespace(self.world, "large", HOSTS["large"], key="large key", **settings)
        self.process = self.world.process


@pytest.fixture
def two() -> Two:
    return Two()


def token(host: str, rule: str = ROOT, key: str = KEY) -> str:
    return make_token(f"sb://{host}/hub", rule, key, 4_000_000_000)


def test_a_host_that_leads_nowhere_names_no_namespace(two: Two) -> None:
    assert two.process.named("Large.Example:5671") is two.large
    assert two.process.named("plain") is two.plain
    assert two.process.named("127.0.0.1") is None
    assert two.process.named("localhost") is None


def test_a_token_belongs_to_the_namespace_of_its_host_else_to_the_first_that_has_its_rule(two: Two) -> None:
    process = two.process
    assert process.of_token(token("large.example")) is two.large
    assert process.of_token(token("127.0.0.1")) is two.plain
    assert process.of_token(token("127.0.0.1", "listener")) is two.plain
    own = AuthorizationRuleDescription("own", Rights.ALL, Secret(KEY), Secret(""))
    two.world.wait(lambda done: two.large.keeper.change_rules(None, lambda level: level.set(own), done))
    assert process.of_token(token("127.0.0.1", "own")) is two.large
    assert process.of_token(token("127.0.0.1", "nobodys")) is two.plain


def test_a_token_without_a_host_belongs_to_the_namespace_whose_rule_signed_it(two: Two) -> None:
    process = two.process
    assert process.of_token(token("127.0.0.1", ROOT, "large key")) is two.large
    assert process.of_token(token("plain.example", ROOT, "large key")) is two.plain, "its host decides"
    assert process.of_token(token("127.0.0.1", ROOT, "nobody's key")) is two.plain
    assert process.of_key(ROOT, Secret("large key")) is two.large
    assert process.of_key(ROOT, Secret("nobody's key")) is two.plain


def test_a_namespace_that_went_leads_nowhere_and_its_connections_end(two: Two) -> None:
    peer = peer_of(two.world, "large.example")
    assert two.large.connection_count == 1
    two.process.remove_gateway(two.large)
    two.world.run_for(20)
    assert two.large.connection_count == 0 and peer.host.is_over
    assert two.process.named("large.example") is None
    two.process.lead(divide({"plain": ["plain.example", "large.example"]}))
    assert two.process.named("large.example") is two.plain


def test_what_is_no_signature_goes_by_the_audience(two: Two) -> None:
    assert two.process.of_token("a.b.c", "sb://large.example/hub") is two.large
    assert two.process.of_token("a.b.c", "sb://127.0.0.1/hub") is two.plain
    assert two.process.of_token("a.b.c") is two.plain
    assert two.process.of_token("SharedAccessSignature nonsense", "sb://large.example/hub") is two.plain


def test_a_good_token_of_one_namespace_is_refused_by_the_other_whatever_host_it_names(two: Two) -> None:
    for host in ("large.example", "plain.example", "127.0.0.1"):
        peer = peer_of(two.world, "large.example")
        assert peer.put_token(f"sb://{host}/hub")[0] == 401
        peer = peer_of(two.world, "plain.example")
        assert peer.put_token(f"sb://{host}/hub", key="large key")[0] == 401


def test_each_namespace_counts_its_own_connections_and_the_process_all(two: Two) -> None:
    peers = [peer_of(two.world, name) for name in ("plain.example", "large.example", "large", "10.0.0.1")]
    assert (two.plain.connection_count, two.large.connection_count) == (2, 2)
    assert two.world.connections.count == 4
    peers[1].cut()
    assert (two.plain.connection_count, two.large.connection_count, two.world.connections.count) == (2, 1, 3)


def test_a_quota_of_connections_holds_in_its_namespace_however_a_connection_came_to_it() -> None:
    two = Two(profile=replace(DEVELOPMENT, connections=1))
    first = peer_of(two.world, "large.example")
    by_name = peer_of(two.world, "large.example")
    assert by_name.is_cut
    by_token = peer_of(two.world, "10.0.0.1")
    by_token.put_token("sb://large.example/hub", key="large key")
    by_token.run()
    assert by_token.is_cut
    assert not first.is_cut
    assert not peer_of(two.world, "plain.example").is_cut


def test_errors_of_the_engine_name_the_namespace_of_their_connection(two: Two) -> None:
    for hostname, name in (("large.example", "large"), ("plain.example", "plain")):
        peer = peer_of(two.world, hostname)
        described = peer.server._connection._describe_error("amqp:not-allowed", "a text")
        assert f"{name}:gateway0" in described


def test_a_hub_that_is_deleted_in_one_namespace_leaves_the_links_to_its_namesake(two: Two) -> None:
    links = []
    for hostname, key in (("plain.example", KEY), ("large.example", "large key")):
        peer = peer_of(two.world, hostname)
        assert peer.put_token(f"sb://{hostname}/hub", key=key)[0] == 202
        links.append((peer, peer.sender("hub")))
    two.world.wait(lambda done: two.large.keeper.delete("hub", EventHubDescription, done))
    two.world.run_for(50)
    (plain_peer, plain), (large_peer, large) = links
    assert large_peer.refusal(large).condition == "amqp:not-found"
    assert plain_peer.is_attached(plain)
    plain.send(event(b"stays"), settled=False)
    plain_peer.run()
    assert plain_peer.outcomes(plain)[0][2] == "accepted"


def test_units_of_one_namespace_are_not_charged_for_the_other(two: Two) -> None:
    two.world.wait(lambda done: two.plain.units.change(done, held=1))
    outcomes = {}
    for hostname, key in (("plain.example", KEY), ("large.example", "large key")):
        peer = peer_of(two.world, hostname)
        peer.put_token(f"sb://{hostname}/hub", key=key)
        link = peer.sender("hub")
        for _ in range(20):  # together more than the thousand events that a unit takes
            for _ in range(100):
                link.send(event(b"x"), settled=False)
            peer.run(20)
        peer.run(500)
        outcomes[hostname] = {text for _, _, text in peer.outcomes(link)}
    assert "com.microsoft:server-busy" in outcomes["plain.example"]
    assert outcomes["large.example"] == {"accepted"}

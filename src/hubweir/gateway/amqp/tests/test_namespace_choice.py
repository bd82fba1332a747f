"""Whose namespace a connection becomes: named by SASL, `open` or a WebSocket's Host, else proved by its first token."""

from __future__ import annotations

from functools import partial

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.tests.further_namespace import further_namespace, peer_of
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.host_names import divide
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

PLAIN, LARGE = "plain.example", "large.example"
LARGE_KEY = "large key"


@pytest.fixture
def world() -> World:
    """Two namespaces; large takes no host but its own."""
    hosts = divide({"plain": [PLAIN], "large": [LARGE]}, addresses=["127.0.0.1"], closed=frozenset(("large",)))
    made = World(hubs={"hub": 1}, settings=GatewaySettings(hosts=hosts["plain"]))
    further_namespace(made, "large", hosts["large"], key=LARGE_KEY)
    return made


def name_of(peer: Peer) -> str:
    return peer.host.gateway.settings.namespace


@pytest.mark.parametrize(
    ("hostname", "name"), [(LARGE, "large"), ("LARGE", "large"), ("127.0.0.1", "hubweir"), (None, "hubweir")]
)
def test_open_names_the_namespace_and_who_names_none_has_the_default(
    world: World, hostname: str | None, name: str
) -> None:
    assert name_of(peer_of(world, hostname)) == name


def test_a_websockets_host_counts_until_amqp_names_another(world: World) -> None:
    assert world.connections.new("a test", "large.example:443")[1].gateway.settings.namespace == "large"
    _, host = world.connections.new("a test", LARGE)
    host.choice.named(PLAIN)
    assert host.gateway is world.gateway
    host.choice.named("10.0.0.1")  # leads nowhere: what was named before stands
    host.choice.named(LARGE)
    host.choice.named(None)
    assert host.gateway.settings.namespace == "large"


def test_where_nobody_is_named_the_first_token_that_is_taken_decides(world: World) -> None:
    peer = peer_of(world, "127.0.0.1")
    assert peer.put_token(f"sb://{LARGE}/hub", key="wrong")[0] == 401
    assert name_of(peer) == "hubweir"
    assert peer.put_token(f"sb://{LARGE}/hub", key=LARGE_KEY)[0] == 202
    assert name_of(peer) == "large"
    assert peer.is_attached(peer.sender("hub"))
    # From here on the connection is large's: what is good elsewhere is not good here.
    assert peer.put_token(f"sb://{PLAIN}/hub")[0] == 401
    assert peer.put_token("sb://127.0.0.1/hub")[0] == 401


def test_a_namespace_that_takes_no_other_host_refuses_its_own_rules_there(world: World) -> None:
    peer = peer_of(world, "127.0.0.1")
    assert peer.put_token("sb://127.0.0.1/hub", key=LARGE_KEY)[0] == 401
    peer = peer_of(world, LARGE)
    assert peer.put_token("sb://127.0.0.1/hub", key=LARGE_KEY)[0] == 401


def test_sasl_plain_is_judged_by_the_namespace_that_sasl_names(world: World) -> None:
    response = f"\0{ROOT}\0{LARGE_KEY}".encode()
    peer = peer_of(world, LARGE, mechanism="PLAIN", response=response)
    assert name_of(peer) == "large"
    assert peer.is_attached(peer.sender("hub"))
    assert peer_of(world, PLAIN, mechanism="PLAIN", response=response).is_cut
    # A rule of a namespace that takes no other host proves nothing under another.
    own = peer_of(world, "10.0.0.1", mechanism="PLAIN", response=f"\0{ROOT}\0{KEY}".encode())
    assert name_of(own) == "hubweir"


def test_a_rule_that_one_namespace_alone_has_proves_nothing_under_a_host_that_is_not_its_own(world: World) -> None:
    [large] = [each for each in world.process.gateways if each.settings.namespace == "large"]
    own = AuthorizationRuleDescription("own", Rights.ALL, Secret("own key"), Secret(""))
    world.wait(partial(large.keeper.change_rules, None, lambda level: level.set(own)))
    assert name_of(peer_of(world, LARGE, mechanism="PLAIN", response=b"\0own\0own key")) == "large"
    assert peer_of(world, "127.0.0.1", mechanism="PLAIN", response=b"\0own\0own key").is_cut


def test_what_sasl_proved_for_one_namespace_ends_with_an_open_that_names_another(world: World) -> None:
    peer = peer_of(world, PLAIN, mechanism="PLAIN", response=f"\0{ROOT}\0{KEY}".encode())
    host = peer.host
    refusal = host.choice.opened(LARGE)
    assert refusal is not None
    assert refusal.condition.symbol == "amqp:not-allowed"
    assert host.choice.opened(PLAIN) is None
    assert host.choice.opened(f"{PLAIN.upper()}:5671") is None
    assert host.choice.opened("10.0.0.1") is None  # plain takes it
    assert host.gateway is world.gateway


def test_a_request_with_a_token_of_its_own_is_judged_where_the_token_belongs(world: World) -> None:
    peer = peer_of(world, "127.0.0.1")
    token = make_token(f"sb://{LARGE}/", ROOT, LARGE_KEY, world.env.now_ms() // 1000 + 60)
    peer.host.claims.authorize_request(Rights.ALL, "hub", token)
    assert name_of(peer) == "large"

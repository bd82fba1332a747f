"""A further namespace in the process of a World, for tests of what namespaces share and what they do not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.catalog_log import load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.secret import Secret
from hubweir.testing.answers import made_log


def peer_of(world: World, hostname: str | None, *, mechanism: str = "ANONYMOUS", response: bytes = b"") -> Peer:
    """A peer that opened its connection, and named this host in SASL and in `open`."""
    peer = Peer(world, EndpointSettings("peer", hostname, sasl_mechanism=mechanism, sasl_response=response))
    peer.endpoint.open()
    world.run_for(20)
    return peer


def further_namespace(world: World, name: str, hosts: HostNames, *, key: str = KEY, **settings: Any) -> Gateway:
    """Its gateway. It has the event hub `hub` of one partition, and the rules ROOT and `sender` with this key."""
    log = made_log(world.env, world.catalog, world.env.new_id())
    writer = CatalogWriter(log, world.env, world.wait(partial(load_catalog, log)), host=name)
    world.wait(lambda done: writer.describe(lambda known: replace(known, name=name), done))
    values = GatewaySettings(namespace=name, host_name=f"{name}.example", hosts=hosts, **settings)
    gateway = Gateway(world.process, writer, values)
    for rule, rights in ((ROOT, Rights.ALL), ("sender", Rights.SEND)):
        made = AuthorizationRuleDescription(rule, rights, Secret(key), Secret(""))
        world.wait(partial(gateway.keeper.change_rules, None, partial(_set, made)))
    world.wait(partial(gateway.keeper.create, EventHubDescription("hub", 1)))
    return gateway


def _set(rule: AuthorizationRuleDescription, level: RuleLevel) -> Rules:
    return level.set(rule)

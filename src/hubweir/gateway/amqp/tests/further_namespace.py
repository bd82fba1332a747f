"""A further namespace in the process of a World, for tests of what namespaces share and what they do not."""

from __future__ import annotations

from functools import partial
from typing import Any

from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.descriptions import AuthorizationRuleDescription, EventHubDescription
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret


def peer_of(world: World, hostname: str | None, *, mechanism: str = "ANONYMOUS", response: bytes = b"") -> Peer:
    """A peer that opened its connection, and named this host in SASL and in `open`."""
    peer = Peer(world, EndpointSettings("peer", hostname, sasl_mechanism=mechanism, sasl_response=response))
    peer.endpoint.open()
    world.run_for(20)
    return peer


def further_namespace(world: World, name: str, hosts: HostNames, *, key: str = KEY, **settings: Any) -> Gateway:
    """Its gateway. It has the event hub `hub` of one partition, and the rules ROOT and `sender` with this key."""
    namespace = Namespace(world.catalog.create_log(world.env.new_id()), world.env, host=name)
    world.wait(lambda done: namespace.name_namespace(name, done))
    values = GatewaySettings(namespace=name, host_name=f"{name}.example", hosts=hosts, **settings)
    gateway = Gateway(world.process, namespace, values)
    for rule, rights in ((ROOT, Rights.ALL), ("sender", Rights.SEND)):
        made = AuthorizationRuleDescription(rule, rights, Secret(key), Secret(""))
        world.wait(partial(namespace.set_rule, None, made))
    world.wait(partial(gateway.management.create_hub, EventHubDescription("hub", 1)))
    return gateway

"""One connection as people hear of it when they ask: since when, from where, by which rules, to which entities."""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.amqp.endpoint import Endpoint
from hubweir.broker.commands.broker_process import ConnectionTold
from hubweir.broker.commands.command import Owner
from hubweir.gateway.amqp.node import Node

TEXT_CHARACTERS = 256  # of each text that the peer chose
NAMED = 5


def told_connection(
    owner: Owner, endpoint: Endpoint, nodes: Sequence[Node], rules: Sequence[str], *, peer: str, is_tls: bool,
    since_ms: int,
) -> ConnectionTold:  # fmt: skip
    """What there is to tell now, as ConnectionTold has it."""
    opened = endpoint.remote_open
    return ConnectionTold(
        number=owner.connection,
        peer=peer,
        is_tls=is_tls,
        since_ms=since_ms,
        client=endpoint.remote_product[:TEXT_CHARACTERS],
        container="" if opened is None else opened.container_id[:TEXT_CHARACTERS],
        rules=_some(rules),
        entities=_some(tuple(dict.fromkeys(node.entity for node in nodes if node.entity))),
        links=len(nodes),
    )


def _some(names: Sequence[str]) -> tuple[str, ...]:
    """The first of them, and a sign that there are more."""
    return tuple(names) if len(names) <= NAMED else (*names[:NAMED], "…")

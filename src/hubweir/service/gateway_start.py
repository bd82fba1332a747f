"""The start of one namespace's gateway: what the catalog says of the namespace, its partitions, units and entities.

Name, host names, profile, rank and the root rule are one record of a catalog: after a crash it holds all of them or
none.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import ROOT_RULE
from hubweir.errors import ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.service.bounded_stop import StopWaits
from hubweir.service.data_folder import ABOUT_CATALOGS
from hubweir.service.desired_entities import make_entities

logger = logging.getLogger(__name__)

# A start waits so long for all partitions: as a rule they are open by then, and no client ever meets one that is not.
OPENING_WAIT_S = 3.0


async def start_gateway(
    process: GatewayProcess, writer: CatalogWriter, wanted: NamespaceSettings, values: GatewaySettings
) -> Gateway:
    """The gateway of a namespace, with the partitions of its catalog open, and all that a start gives it.

    A partition that cannot be opened, or not within OPENING_WAIT_S, is not served yet; the broker goes on trying. Where
    entities are wanted, the end of every first try is waited for, since they may be changed.

    ServiceError: a setting that the namespace refuses; EmulatorFileError: entities that it refuses.
    """
    await _describe(writer, wanted)
    gateway = Gateway(process, writer, values)
    assert isinstance(gateway.units, NamespaceUnits), "who has the catalog's writer has all of the units"
    await _open_partitions(gateway, None if wanted.entities is not None else OPENING_WAIT_S)
    if not wanted.is_made_running:
        await answer_of(partial(gateway.units.ask, wanted.throughput_units, wanted.maximum_throughput_units))
    if wanted.entities is not None:
        await make_entities(gateway, wanted.entities)
    return gateway


async def _open_partitions(gateway: Gateway, wait_s: float | None) -> None:
    """Have all partitions opened; come back when they are, or after wait_s: the others are served meanwhile.

    One that is not open is opened all the same, and an alarm of the broker stands until it is.
    """
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(problems: list[ServiceError]) -> None:
        for problem in problems:
            logger.error("not served yet: %s", problem.text)
        gateway.forwarder.start()
        if not opened.done():
            opened.set_result(None)

    gateway.keeper.start(answered)
    await asyncio.wait({opened}, timeout=wait_s)
    if not opened.done():
        logger.warning("namespace %s is served while some of its partitions are being opened", gateway.namespace.host)


async def _describe(writer: CatalogWriter, wanted: NamespaceSettings) -> None:
    """Have the catalog say what the namespace is from now on; nothing is written where it says so already."""
    known = writer.namespace.description
    is_own = wanted.is_made_running and bool(known.name)
    rule = None if is_own else _root_rule(known, wanted.key)  # its owner may have renewed it, or removed it
    said: dict[str, Any] = {
        "name": wanted.name,
        "hostnames": wanted.hostnames,
        "profile": wanted.profile,
        "default_rank": wanted.default_rank,
        "is_made_running": wanted.is_made_running,
    }
    if wanted.is_made_running and not known.name:
        said["units"] = UnitsDescription(wanted.throughput_units or 0, wanted.maximum_throughput_units or 0)
    if rule is None and all(getattr(known, member) == value for member, value in said.items()):
        return

    def say(now: NamespaceDescription) -> NamespaceDescription:
        rules = now.rules if rule is None else RuleLevel(now, wanted.name).set(rule)
        return replace(now, **said, rules=rules)

    await answer_of(partial(writer.describe, say))


def _root_rule(known: NamespaceDescription, key: str) -> AuthorizationRuleDescription | None:
    """The root rule with this primary key; None when it is there."""
    found = next((rule for rule in known.rules if rule.name == ROOT_RULE), None)
    if found is not None and hmac.compare_digest(found.primary.reveal().encode(), key.encode()):
        return None
    secondary = found.secondary if found is not None else Secret("")
    return AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, Secret(key), secondary)


async def stop_gateways(process: GatewayProcess, waits: StopWaits) -> None:
    """Have each gateway begin nothing more, and write what was used of its throughput units.

    That it could not be written is logged where it happens. Nothing is tried again.
    """
    for gateway in process.gateways:
        if gateway.idle_deletions is not None:
            gateway.idle_deletions.stop()
        gateway.forwarder.stop()
        gateway.keeper.stop()
        with suppress(ServiceError), waits.on(ABOUT_CATALOGS):
            await answer_of(gateway.units.stop)

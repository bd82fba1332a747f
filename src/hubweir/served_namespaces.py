"""The namespaces of one service at its start: whose catalog is whose, names and root rules, a gateway for each.

The catalogs' store has one log for each namespace, with the name in it:

- config/namespaces_at_start.py decides what is served, by what the start says and by what these catalogs say.
- A namespace that is new gets a new catalog. What a crash left without a name is taken first.
- Name, host names, profile and rank are one record of a catalog: after a crash it holds all of them or none.
- A catalog that is lost ends the start: a new one in its place would show an empty namespace.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hubweir.alarms import LOGS_UNNAMED
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import ROOT_RULE, Settings
from hubweir.desired_entities import make_entities
from hubweir.env import Env
from hubweir.errors import CatalogLost, LogLost, ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.settings import GatewaySettings
from hubweir.messaging_store.log import Log
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_log import CatalogLog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.event_hub_description import PARTITIONS_LIMIT
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import OFFICIAL_EMULATOR, PROFILES

logger = logging.getLogger(__name__)

# A start waits so long for all partitions: as a rule they are open by then, and no client ever meets one that is not.
OPENING_WAIT_S = 3.0
CATALOG = "the catalog of a namespace"  # its log, in alarms


class StoredNamespaces:
    """The catalogs of a data folder, each read once, here. Blocks while logs are read.

    unnamed: the ids of logs of partitions that no catalog names.
    """

    def __init__(self, env: Env, catalogs: MessagingStore, logs: Sequence[str] = ()) -> None:
        """logs: ids of all logs of partitions. Raises CatalogLost, and as create_log and CatalogLog do."""
        self._env, self._catalogs = env, catalogs
        self._named: dict[str, Log] = {}
        self._nameless: list[Log] = []
        self.descriptions: list[NamespaceDescription] = []
        ours: set[str] = set()
        for log_id in catalogs.log_ids():
            log, catalog = self._catalog(log_id)
            ours.update(placement.log_id for entity in catalog.entities() for placement in entity.placements)
            description = catalog.namespace
            if description.name:
                self._named[fold(description.name)] = log
                self.descriptions.append(description)
            else:
                self._nameless.append(log)
        self.unnamed = tuple(log_id for log_id in logs if log_id not in ours)
        if self.unnamed:
            text = f"no catalog names {len(self.unnamed)} logs of partitions: {', '.join(self.unnamed[:3])}"
            catalogs.alarms.begin(LOGS_UNNAMED, "the data folder", text)

    def _catalog(self, log_id: str) -> tuple[Log, Catalog]:
        try:
            log = self._catalogs.create_log(log_id, name=CATALOG)
        except LogLost as error:
            raise CatalogLost(
                f"the catalog of a namespace is lost: {error}. Nothing was changed; without it nobody knows whose its "
                "hubs' logs are (`hubweir store list` shows them)"
            ) from error
        return log, CatalogLog(log, self._env).catalog

    def open(
        self, served: NamespaceSettings, *, partitions_max: int = PARTITIONS_LIMIT, capture_account: str = ""
    ) -> CatalogWriter:
        """The namespace on its catalog, which is made when it is new. partitions_max, capture_account: ChangeContext.

        CatalogLost, and nothing is made, when there are logs that no catalog names: its own may be the lost one.
        After a crash in between: a catalog without a name, which the next start takes.
        """
        log = self._named.get(fold(served.stored_name))
        if log is None and self.unnamed:
            raise CatalogLost(_lost_text(served.name, self.unnamed))
        if log is None:
            log = self._nameless.pop() if self._nameless else None
        log = log or self._catalogs.create_log(self._env.new_id(), name=CATALOG)
        return CatalogWriter(
            log,
            self._env,
            profile=PROFILES[served.profile],
            host=served.name,
            partitions_max=partitions_max,
            capture_account=capture_account,
        )


def _lost_text(name: str, unnamed: Sequence[str]) -> str:
    more = f" and {len(unnamed) - 1} more" if len(unnamed) > 1 else ""
    return (
        f"namespace {name} has no catalog here, and no catalog names the log {unnamed[0]}{more} of partitions: a "
        "catalog is lost. Put the folder `catalog` back from a backup; `hubweir store list` shows what is there. "
        "Whoever gives these events up moves the folders of these logs away"
    )


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
    await _open_partitions(gateway, None if wanted.entities is not None else OPENING_WAIT_S)
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
        if not opened.done():
            opened.set_result(None)

    gateway.keeper.start(answered)
    await asyncio.wait({opened}, timeout=wait_s)
    if not opened.done():
        logger.warning("namespace %s is served while some of its partitions are being opened", gateway.namespace.host)


async def _describe(writer: CatalogWriter, wanted: NamespaceSettings) -> None:
    """Have the catalog say what the namespace is from now on; nothing is written where it says so already."""
    known = writer.namespace.description
    described = (known.name, known.hostnames, known.profile, known.default_rank)
    if described != (wanted.name, wanted.hostnames, wanted.profile, wanted.default_rank):
        say = partial(
            replace,
            name=wanted.name,
            hostnames=wanted.hostnames,
            profile=wanted.profile,
            default_rank=wanted.default_rank,
        )
        await answer_of(partial(writer.describe, say))
    rule = _root_rule(writer.namespace.description, wanted.key)
    if rule is not None:
        await answer_of(partial(writer.change_rules, None, lambda level: level.set(rule)))


def _root_rule(known: NamespaceDescription, key: str) -> AuthorizationRuleDescription | None:
    """The root rule with this primary key; None when it is there."""
    found = next((rule for rule in known.rules if rule.name == ROOT_RULE), None)
    if found is not None and hmac.compare_digest(found.primary.reveal().encode(), key.encode()):
        return None
    secondary = found.secondary if found is not None else Secret("")
    return AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, Secret(key), secondary)


def gateway_settings(
    settings: Settings, wanted: NamespaceSettings, hosts: HostNames, issuer: IssuerKeys | None
) -> GatewaySettings:
    """What the settings say about one gateway, with the quotas of its namespace's profile."""
    profile = PROFILES[wanted.profile]
    return GatewaySettings(
        namespace=wanted.name,
        host_name=(wanted.hostnames or settings.host)[0] if wanted.is_default else wanted.host_name,
        hosts=hosts,
        settings_rule=ROOT_RULE,
        issuer=issuer,
        max_frame_size_bytes=settings.max_frame_size_bytes,
        max_message_size_bytes=min(
            settings.max_message_size_bytes,
            settings.max_message_size_bytes if profile.connections is None else profile.message_size_bytes,
        ),
        connections_max=profile.connections,
        management_reads_per_second=profile.management_reads_per_second,
        # Its clients come from other containers, and have no TLS.
        plain_without_tls=settings.plain_without_tls or settings.profile == OFFICIAL_EMULATOR.name,
        partition_cap=settings.partition_cap,
        max_throughput_units=settings.max_throughput_units,
        idle_timeout_ms=settings.idle_timeout_ms,
        unauthorized_connection_ms=settings.unauthorized_connection_ms,
        idle_link_ms=settings.idle_link_ms,
        connection_budget_bytes=settings.connection_budget_bytes,
        process_budget_bytes=settings.process_budget_bytes,
    )

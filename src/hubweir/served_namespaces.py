"""The namespaces of one service at its start: whose catalog is whose, names and root rules, a gateway for each.

The catalogs' store has one log for each namespace, with the name in it:

- A catalog with the name of a wanted namespace is that namespace's.
- The only catalog of a folder is the default namespace's, whatever its name: a single namespace is renamed by its
  setting.
- Every other wanted namespace gets a new catalog. What a crash left without a name is taken first.

A catalog that nobody wants is left as it is, with the logs of its partitions, until its name is wanted again.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.config.namespace_settings import NamespaceSettings
from hubweir.config.settings import ROOT_RULE, Settings
from hubweir.desired_entities import make_entities
from hubweir.env import Env
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.settings import GatewaySettings
from hubweir.messaging_store.log import Log
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.namespace.catalog_log import CatalogLog
from hubweir.namespace.descriptions import PARTITIONS_MAX, AuthorizationRuleDescription, NamespaceDescription
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import PROFILES

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedNamespaces:
    """namespaces: in the order in which they were wanted. left: names of those whose catalogs nobody wants."""

    namespaces: tuple[Namespace, ...]
    left: tuple[str, ...]


def open_namespaces(
    env: Env, catalogs: MessagingStore, wanted: Sequence[NamespaceSettings], *, partitions_max: int = PARTITIONS_MAX
) -> OpenedNamespaces:
    """Open the catalog of every wanted namespace; see the module's text. Blocks while logs are read.

    partitions_max: of a hub that is made from now on.

    After a crash in between: catalogs without a name, which the next start takes.
    """
    logs = [catalogs.create_log(log_id) for log_id in catalogs.log_ids()]
    names = {id(log): fold(CatalogLog(log, env).catalog.namespace.name) for log in logs}
    named: dict[str, Log] = {names[id(log)]: log for log in logs if names[id(log)]}
    nameless: list[Log] = [log for log in logs if not names[id(log)]]
    default = fold(wanted[0].name)
    if len(named) == 1 and not named.keys() & {fold(each.name) for each in wanted}:
        named[default] = named.popitem()[1]
    namespaces = []
    for each in wanted:
        log = named.pop(fold(each.name), None) or (nameless.pop() if nameless else catalogs.create_log(env.new_id()))
        profile = PROFILES[each.profile]
        namespaces.append(Namespace(log, env, profile=profile, host=each.name, partitions_max=partitions_max))
    return OpenedNamespaces(tuple(namespaces), tuple(sorted(named)))


async def start_gateway(
    process: GatewayProcess, namespace: Namespace, wanted: NamespaceSettings, values: GatewaySettings
) -> Gateway:
    """The gateway of a namespace, with every partition of its catalog open, and all that a start gives it.

    A partition that cannot be opened is logged and not served. ServiceError: a setting that the namespace refuses;
    EmulatorFileError: entities that it refuses.
    """
    await _take_settings(namespace, wanted)
    gateway = Gateway(process, namespace, values)
    for problem in await answer_of(gateway.keeper.start):
        logger.error("not served: %s", problem.text)
    held, maximum = wanted.throughput_units, wanted.maximum_throughput_units
    await answer_of(partial(gateway.units.apply_settings, held, maximum))
    if wanted.entities is not None:
        await make_entities(gateway, wanted.entities)
    return gateway


async def _take_settings(namespace: Namespace, wanted: NamespaceSettings) -> None:
    """The namespace's name and the key of its root rule are what the settings say; the rest is the catalog's."""
    if namespace.description.name != wanted.name:
        await answer_of(partial(namespace.name_namespace, wanted.name))
    rule = _root_rule(namespace.description, wanted.key)
    if rule is not None:
        await answer_of(partial(namespace.set_rule, None, rule))


def _root_rule(known: NamespaceDescription, key: str) -> AuthorizationRuleDescription | None:
    """The root rule with this primary key; None when it is there."""
    found = next((rule for rule in known.rules if rule.name == ROOT_RULE), None)
    if found is not None and hmac.compare_digest(found.primary.reveal().encode(), key.encode()):
        return None
    secondary = found.secondary if found is not None else Secret("")
    return AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, Secret(key), secondary)


def gateway_settings(
    settings: Settings, wanted: NamespaceSettings, hosts: HostNames, issuer: IssuerKeys | None, capture_account: str
) -> GatewaySettings:
    """What the settings say about one gateway, with the quotas of its namespace's profile.

    capture_account: name of the storage account that captured files may go to; "": there is none.
    """
    profile = PROFILES[wanted.profile]
    is_default = fold(wanted.name) == fold(settings.namespace)
    return GatewaySettings(
        namespace=wanted.name,
        host_name=(settings.hostname or settings.host)[0] if is_default else wanted.host_name,
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
        plain_without_tls=settings.plain_without_tls or profile.name == "official-emulator",
        partition_cap=settings.partition_cap,
        max_throughput_units=settings.max_throughput_units,
        capture_account=capture_account,
        idle_timeout_ms=settings.idle_timeout_ms,
        unauthorized_connection_ms=settings.unauthorized_connection_ms,
        idle_link_ms=settings.idle_link_ms,
        connection_budget_bytes=settings.connection_budget_bytes,
        process_budget_bytes=settings.process_budget_bytes,
    )

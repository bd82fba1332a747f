"""The namespaces that a service is to have: the default one of the settings first, then those of files and flags.

The first namespace of a Config.json is the default one, and flags, variables and a TOML file win over what it says of
itself. The further ones are what the files say, or what the setting `further_namespace` names; where they say nothing
of profile and key, the service's own hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.settings import ROOT_RULE, BadSetting, Settings
from hubweir.errors import ServiceError
from hubweir.namespace.host_names import HostNames, HostNameTaken, divide
from hubweir.namespace.names import check_namespace_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import DEVELOPMENT, OFFICIAL_EMULATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSettings:
    """What a start gives one namespace. hostnames: without those that its name makes. key: of the root rule.

    profile: a name of namespace/tiers.py. units: 0 is off. entities: what a Config.json wants to be there.
    """

    name: str
    hostnames: tuple[str, ...] = ()
    profile: str = DEVELOPMENT.name
    key: str = field(repr=False)
    throughput_units: int = 0
    maximum_throughput_units: int = 0
    entities: NamespaceConfig | None = None

    @property
    def host_name(self) -> str:
        """The host that clients are told of."""
        return self.hostnames[0] if self.hostnames else f"{fold(self.name)}.localhost"


def namespaces_of(
    settings: Settings, files: Sequence[NamespaceConfig] = (), *, profile: str = ""
) -> tuple[NamespaceSettings, ...]:
    """The namespaces, the default one first. Raises BadSetting for two of one name, or one that is not legal.

    settings: those of the first of files are in them already. profile: of further namespaces that name no Sku; "":
    that of the settings.
    """
    default = NamespaceSettings(
        name=settings.namespace,
        hostnames=settings.hostname,
        profile=settings.profile,
        key=settings.key,
        throughput_units=settings.throughput_units,
        maximum_throughput_units=settings.maximum_throughput_units,
        entities=files[0] if files else None,
    )
    usual = profile or settings.profile
    named = (_of_file(found, settings, usual) for found in files[1:])
    flagged = (_of_flag(text, settings, usual) for text in settings.further_namespace)
    namespaces = (default, *named, *flagged)
    seen: set[str] = set()
    for namespace in namespaces:
        _check_name(namespace.name)
        if fold(namespace.name) in seen:
            raise BadSetting(f"two namespaces have the name {namespace.name}; give each a name of its own")
        seen.add(fold(namespace.name))
    return namespaces


def hosts_of(settings: Settings, namespaces: Iterable[NamespaceSettings]) -> dict[str, HostNames]:
    """The hosts that lead to each namespace, by its name; BadSetting when two want one.

    A namespace of a tier that has host names takes no other: their clients are told where it is.
    """
    namespaces = tuple(namespaces)
    open_profiles = (DEVELOPMENT.name, OFFICIAL_EMULATOR.name)
    closed = frozenset(each.name for each in namespaces if each.hostnames and each.profile not in open_profiles)
    given = {each.name: each.hostnames for each in namespaces}
    try:
        return divide(given, addresses=("127.0.0.1", "::1", *settings.host), closed=closed)
    except HostNameTaken as taken:
        raise BadSetting(str(taken)) from None


def _of_file(found: NamespaceConfig, settings: Settings, profile: str) -> NamespaceSettings:
    own_keys = (rule.primary for rule in found.rules if fold(rule.name) == fold(ROOT_RULE))
    key = next(own_keys, None)
    inflates = found.is_auto_inflate_enabled is not False
    return NamespaceSettings(
        name=found.name,
        hostnames=found.hostnames,
        profile=profile if found.sku is None else found.sku.value.lower(),
        key=settings.key if key is None else key.reveal(),
        throughput_units=found.throughput_units or 0,
        maximum_throughput_units=(found.maximum_throughput_units or 0) if inflates else 0,
        entities=found,
    )


def _of_flag(text: str, settings: Settings, profile: str) -> NamespaceSettings:
    """NAME, or NAME=HOST, or NAME=HOST+HOST."""
    name, equals, hosts = text.partition("=")
    hostnames = tuple(hosts.split("+")) if equals else ()
    if not all(hostnames):
        raise BadSetting(f"further_namespace is {text!r}; write NAME, NAME=HOST or NAME=HOST+HOST")
    return NamespaceSettings(name=name, hostnames=hostnames, profile=profile, key=settings.key)


def _check_name(name: str) -> None:
    try:
        check_namespace_name(name)
    except ServiceError as refusal:
        raise BadSetting(f"the namespace's name {name!r} is not legal: {refusal.text}") from None

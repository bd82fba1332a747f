"""Settings of namespaces at a start: flags, variables, a TOML file, and the Config.json files that they name.

The first namespace of the files is the default one, and flags, variables and a TOML file win over what its item says;
but a key that a file gives a namespace wins over the setting `key`, which is for all of them. Further namespaces are
those of the files, and those that the setting `further_namespace` names. What a start does not say of a namespace
stays as its data folder has it: namespaces_at_start.py puts both together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.settings import ROOT_RULE, BadSetting, CatalogSettings
from hubweir.errors import ServiceError
from hubweir.namespace.names import check_namespace_name
from hubweir.namespace.resource_path import fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a start says of one namespace; None: nothing. key: primary key of the root rule. units: 0 is off.

    places: by field, where it is said, for people. entities: what a Config.json wants to be there.
    """

    name: str | None = None
    hostnames: tuple[str, ...] | None = None
    profile: str | None = None
    key: str | None = field(default=None, repr=False)
    throughput_units: int | None = None
    maximum_throughput_units: int | None = None
    entities: NamespaceConfig | None = None
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SaidNamespaces:
    """What a start says of all namespaces. others: of each that it does not name. notes: sources that disagree."""

    default: Said
    further: tuple[Said, ...] = ()
    others: Said = Said()
    notes: tuple[str, ...] = ()


def given_in(settings: CatalogSettings) -> dict[str, str]:
    """Settings that were made in code: those that differ from their defaults, with "the settings" for a source."""
    lines = dataclasses.fields(settings)
    return {line.name: "the settings" for line in lines if getattr(settings, line.name) != line.default}


def said_namespaces(
    settings: CatalogSettings, files: Sequence[NamespaceConfig] = (), *, sources: Mapping[str, str] | None = None
) -> SaidNamespaces:
    """What settings and files say together. Raises BadSetting for a name that is not legal.

    sources: of the settings that were given, the others are defaults; None: what differs from its default was given.
    """
    given = given_in(settings) if sources is None else sources
    others = _others(settings, given)
    items = [_of_file(found) for found in files]
    default = _over(_of_settings(settings, given), _over(items[0], others) if items else others)
    flagged = (_of_flag(text, given["further_namespace"]) for text in settings.further_namespace)
    further = tuple(_over(each, others) for each in (*items[1:], *flagged))
    for each in (default, *further):
        _check_name(each.name)
    notes = [note for item in items for note in _disagreements(item, others)]
    return SaidNamespaces(default, further, others, tuple(notes))


def _of_settings(settings: CatalogSettings, given: Mapping[str, str]) -> Said:
    """What the settings say of the default namespace alone."""
    named = {"name": "namespace", "hostnames": "hostname"}
    fields = {each: each for each in ("throughput_units", "maximum_throughput_units")} | named
    if "profile" in given:
        fields["profile"] = "profile"  # so that it wins over the Sku of the file's first item
    return _said({name: getattr(settings, of) for name, of in fields.items() if of in given}, given, fields)


def _others(settings: CatalogSettings, given: Mapping[str, str]) -> Said:
    """What the settings say of every namespace of which a file does not say it."""
    fields = {each: each for each in ("profile", "key")}
    return _said({name: getattr(settings, name) for name in fields if name in given}, given, fields)


def _said(values: Mapping[str, object], given: Mapping[str, str], names: Mapping[str, str]) -> Said:
    return Said(**values, places={name: given[names[name]] for name in values})  # type: ignore[arg-type]  # of fields


def _of_file(found: NamespaceConfig) -> Said:
    """What an item of a Config.json says."""
    rule = next((rule for rule in found.rules if fold(rule.name) == fold(ROOT_RULE)), None)
    key = None if rule is None or rule.primary is None else rule.primary.reveal()
    maximum = 0 if found.is_auto_inflate_enabled is False else found.maximum_throughput_units
    file = found.location.file
    return Said(
        name=found.name,
        hostnames=found.hostnames or None,
        profile=None if found.sku is None else found.sku.value.lower(),
        key=key,
        throughput_units=found.throughput_units,
        maximum_throughput_units=maximum,
        entities=found,
        places={line.name: file for line in dataclasses.fields(Said)},
    )


def _of_flag(text: str, place: str) -> Said:
    """NAME, or NAME=HOST, or NAME=HOST+HOST."""
    name, equals, hosts = text.partition("=")
    hostnames = tuple(hosts.split("+")) if equals else None
    if hostnames is not None and not all(hostnames):
        raise BadSetting(f"further_namespace is {text!r}; write NAME, NAME=HOST or NAME=HOST+HOST")
    return Said(name=name, hostnames=hostnames, places={"name": place, "hostnames": place})


def _over(upper: Said, lower: Said) -> Said:
    """What upper says, and below it lower."""
    names = [line.name for line in dataclasses.fields(Said) if line.name != "places"]
    says = {name: upper if getattr(upper, name) is not None else lower for name in names}
    places = {name: of.places[name] for name, of in says.items() if name in of.places}
    return Said(**{name: getattr(of, name) for name, of in says.items()}, places=places)


def _disagreements(item: Said, others: Said) -> list[str]:
    if item.key is None or others.key is None or item.key == others.key:
        return []
    file, setting = item.places["key"], others.places["key"]
    return [
        f"namespace {item.name}: {file} and {setting} give the rule {ROOT_RULE} different primary keys; that of "
        f"{file} holds"
    ]


def _check_name(name: str | None) -> None:
    try:
        if name is not None:
            check_namespace_name(name)
    except ServiceError as refusal:
        raise BadSetting(f"the namespace's name {name!r} is not legal: {refusal.text}") from None

"""Merges the settings of a start with what the data folder has into the namespaces that it serves.

- Every namespace of the data folder is served, whether the start names it or not; one that is not there is added.
- The default one is the one that the start names, or else the one that was it before. The only namespace of a folder
  is renamed when the start names the default one otherwise and does not name it as a further one.
- Of each namespace holds what the start says, or else what the folder has; in a new one the defaults. Of one that was
  made while the service ran, what the start says of all namespaces does not hold, unless it names it.

Whatever the start changes in what the folder has is told in a note, with the source that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.namespace_settings import Said, SaidNamespaces
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE, BadSetting, DoorSettings
from hubweir.namespace.host_names import HostNames, HostNameTaken, bare_host, divide
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import DEVELOPMENT, OFFICIAL_EMULATOR

DEFAULT_NAME = "hubweir"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSettings:
    """One namespace as it is served. hostnames: without those that its name makes.

    key: of the root rule; "" where the owner of a namespace that was made while the service ran removed that rule.
    stored_name: under which the data folder has it; "": it is new. profile: a name of namespace/tiers.py.
    default_rank, is_made_running: see NamespaceDescription; a start that names it takes it over.
    units: None is as they are, 0 is off. entities: what a Config.json wants to
    be there.
    """

    name: str
    stored_name: str = ""
    is_default: bool = False
    default_rank: int = 0
    is_made_running: bool = False
    hostnames: tuple[str, ...] = ()
    profile: str = DEVELOPMENT.name
    key: str = field(repr=False)
    throughput_units: int | None = None
    maximum_throughput_units: int | None = None
    entities: NamespaceConfig | None = None

    @property
    def host_name(self) -> str:
        """The host that clients are told of."""
        return self.hostnames[0] if self.hostnames else f"{fold(self.name)}.localhost"


@dataclass(frozen=True, slots=True)
class NamespacesAtStart:
    """namespaces: the default one, then those of the folder by age, then new ones. notes: what people are told."""

    namespaces: tuple[NamespaceSettings, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    """One namespace: what the folder has, None when it is new, and what the start says."""

    stored: NamespaceDescription | None
    said: Said

    @property
    def name(self) -> str:
        return self.said.name or (DEFAULT_NAME if self.stored is None else self.stored.name)


def namespaces_at_start(said: SaidNamespaces, stored: Iterable[NamespaceDescription] = ()) -> NamespacesAtStart:
    """See the module's text. stored: of the data folder, each with a name. Raises BadSetting for two of one name."""
    by_age = sorted(stored, key=lambda each: (each.created_at_ms, fold(each.name)))
    before = max(by_age, key=lambda each: each.default_rank, default=None)
    pairs = _pairs(said, by_age, before)
    given = {bare_host(host) for pair in pairs for host in pair.said.hostnames or ()}
    served = [_served(pair, given) for pair in pairs]
    served[0] = replace(served[0], is_default=True, default_rank=_rank(pairs[0], before))
    notes = [*said.notes]
    if before is not None:
        notes += _notes_of_default(pairs[0], before)
        for pair, each in zip(pairs, served, strict=True):
            notes += _notes(pair, each)
    return NamespacesAtStart(tuple(served), tuple(notes))


def _pairs(
    said: SaidNamespaces, by_age: Sequence[NamespaceDescription], before: NamespaceDescription | None
) -> list[_Pair]:
    """Every namespace of the folder and of the start, once. before: the default one of the folder."""
    left = {fold(each.name): each for each in by_age}
    named = {fold(each.name) for each in (said.default, *said.further) if each.name is not None}
    default = said.default
    if default.name is None or (len(left) == 1 and not named & left.keys()):
        stored = before
    else:
        stored = left.get(fold(default.name))
    if stored is not None:
        del left[fold(stored.name)]
    pairs = [_Pair(stored, default)]
    by_name = {fold(each.name or ""): each for each in said.further}
    pairs += [_Pair(each, by_name.pop(name, _unnamed(each, said))) for name, each in left.items()]
    pairs += [_Pair(None, each) for each in by_name.values()]
    _check_names([pairs[0].name, *(each.name or "" for each in said.further)])
    return pairs


def _unnamed(stored: NamespaceDescription, said: SaidNamespaces) -> Said:
    """What the start says of a namespace that it does not name."""
    return Said() if stored.is_made_running else said.others


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if fold(name) in seen:
            raise BadSetting(f"two namespaces have the name {name}; give each a name of its own")
        seen.add(fold(name))


def _rank(default: _Pair, before: NamespaceDescription | None) -> int:
    """Of the default namespace: above that of all others, and what it was when it is the highest already."""
    if before is None:
        return 1
    return before.default_rank if default.stored is before and before.default_rank else before.default_rank + 1


def _served(pair: _Pair, given: set[str]) -> NamespaceSettings:
    """given: host names that the start gives to a namespace, so that no other keeps them."""
    said, stored = pair.said, pair.stored or NamespaceDescription("")
    hostnames, is_own = said.hostnames, stored.is_made_running and said.name is None
    if hostnames is None:
        hostnames = tuple(host for host in stored.hostnames if bare_host(host) not in given)
    return NamespaceSettings(
        name=pair.name,
        stored_name=stored.name,
        default_rank=stored.default_rank,
        is_made_running=is_own,
        hostnames=hostnames,
        profile=said.profile or stored.profile or DEVELOPMENT.name,
        key=said.key or _stored_key(stored) or ("" if is_own else DEVELOPMENT_KEY),
        throughput_units=said.throughput_units,
        maximum_throughput_units=said.maximum_throughput_units,
        entities=said.entities,
    )


def restored_namespace(stored: NamespaceDescription) -> NamespaceSettings:
    """What a namespace of a backup that comes while the service runs is served as: what it was, as one made then."""
    return replace(_served(_Pair(stored, Said()), set()), is_made_running=True, key=_stored_key(stored))


def _stored_key(stored: NamespaceDescription) -> str:
    return next((rule.primary.reveal() for rule in stored.rules if fold(rule.name) == fold(ROOT_RULE)), "")


def _notes_of_default(default: _Pair, before: NamespaceDescription) -> list[str]:
    place = default.said.places.get("name", "")
    if default.stored is None:
        return [f"the default namespace is {default.name}, which is new, by {place}; {before.name} is served beside it"]
    if default.stored is not before:
        return [f"the default namespace is {default.name} now, by {place}; {before.name}, which was it, is beside it"]
    if default.name != before.name:
        return [f"the namespace {before.name} is called {default.name} now, by {place}"]
    return []


def _notes(pair: _Pair, served: NamespaceSettings) -> list[str]:
    """What the start changes of a namespace that the folder has; that it adds one."""
    said, stored = pair.said, pair.stored
    if stored is None:
        return [] if served.is_default else [f"the namespace {served.name} is new, by {said.places['name']}"]
    held, maximum = stored.units.asked, stored.units.maximum
    elsewhere = "those that were given to another namespace"
    changes = (
        ("profile", "its profile", stored.profile or DEVELOPMENT.name, served.profile),
        ("hostnames", "its host names", _listed(stored.hostnames), _listed(served.hostnames)),
        ("throughput_units", "its throughput units", held, _or(said.throughput_units, held)),
        ("maximum_throughput_units", "its maximum", maximum, _or(said.maximum_throughput_units, maximum)),
    )
    notes = [
        f"namespace {served.name}: {what} became {now}, by {said.places.get(member, elsewhere)}; before: {then}"
        for member, what, then, now in changes
        if now != then
    ]
    known = _stored_key(stored)
    if known and known != served.key:
        notes.append(
            f"namespace {served.name}: the primary key of the rule {ROOT_RULE} became that of {said.places['key']}; "
            "the data folder had another, which ends with this start"
        )
    return notes


def _or(number: int | None, other: int) -> int:
    return other if number is None else number


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def hosts_of(settings: DoorSettings, namespaces: Iterable[NamespaceSettings]) -> dict[str, HostNames]:
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

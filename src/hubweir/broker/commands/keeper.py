"""Commands to the keeper of the catalogs, and its answers: copies followed, changes asked for, units lent.

The keeper is in one process, which alone changes catalogs; every other one follows each namespace that it serves
(gateway/keeper/). Changes travel as values (namespace/change_forms.py), are judged by the keeper when their turn comes,
and are answered when every process that follows has applied them. Bytes hold keys in clear. The namespaces that there
are is a list that each process follows in the same way.
"""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, Cost, KeeperCommand, Push, answer, command, push
from hubweir.broker.commands.process import Done
from hubweir.throughput_unit.rate_limit import Amount
from hubweir.throughput_unit.unit_lender import LeaseAsked
from hubweir.throughput_unit.usage import MovedCounts

# A catalog goes over in pieces of this many bytes.
PART_BYTES = 1024 * 1024


@answer(224)
class CatalogFollowed(Answer, frozen=True):
    """The parts of the catalog went before this. version: of the whole; size_bytes: of all parts together."""

    version: int
    size_bytes: int


@command(192, CatalogFollowed)
class FollowCatalog(KeeperCommand, frozen=True):
    """Send the whole catalog in parts, and from then on each operation. Asked again, it begins anew."""


@push(150)
class CatalogPart(Push, frozen=True):
    """The next piece of a snapshot (Catalog.snapshot)."""

    namespace: str
    data: bytes | memoryview


@push(151)
class CatalogChanged(Push, frozen=True):
    """One operation more. version: of the catalog with it. operation: see namespace/catalog_operation.py."""

    namespace: str
    version: int
    operation: bytes


@command(193, Done, cost=Cost.END)
class CatalogApplied(KeeperCommand, frozen=True):
    """All up to this version is applied here, and nothing goes by what was before."""

    version: int


# Changes


@answer(225)
class EntityAsKept(Answer, frozen=True):
    """description: of the entity with the change; of one that was deleted as it was."""

    description: bytes


@command(194, EntityAsKept)
class CreateEntity(KeeperCommand, frozen=True):
    """Make an entity; answered when it is served."""

    description: bytes


@command(195, EntityAsKept)
class UpdateEntity(KeeperCommand, frozen=True):
    """Change an entity that is served. kind: the value of its EntityKind."""

    name: str
    kind: str
    change: bytes


@command(196, EntityAsKept)
class DeleteEntity(KeeperCommand, frozen=True):
    """Remove an entity with all that it holds."""

    name: str
    kind: str


@command(197, Done)
class UpdateAuthorizationRules(KeeperCommand, frozen=True):
    """Change the authorization rules of an entity, or with None of the namespace."""

    entity: str | None
    change: bytes


@answer(226)
class RuleAsKept(Answer, frozen=True):
    """rule: of a subscription, with the time at which it was made."""

    rule: bytes


@command(198, RuleAsKept)
class PutCatalogRule(KeeperCommand, frozen=True):
    """Make a rule of a subscription, by its path, or replace the one of its name.

    keeps: what stays of that, a value of KeptPart; None: there is none of its name yet.
    """

    subscription: str
    rule: bytes
    keeps: str | None


@command(199, Done)
class RemoveCatalogRule(KeeperCommand, frozen=True):
    """Remove a rule of a subscription, by its path."""

    subscription: str
    name: str


@command(212, Done)
class UpdateTags(KeeperCommand, frozen=True):
    """Give the namespace another location, or other tags in the place of all that it has; None leaves them."""

    location: str | None
    tags: tuple[tuple[str, str], ...] | None


# Throughput units


@command(200, Done)
class UpdateUnits(KeeperCommand, frozen=True):
    """Hold other throughput units, or let auto-inflate go elsewhere; None leaves a number as it is."""

    held: int | None
    maximum: int | None


@answer(227)
class UsageTold(Answer, frozen=True):
    """hours: rows of counts, oldest first (throughput_unit/usage.py)."""

    hours: tuple[tuple[int, ...], ...]


@command(201, UsageTold)
class AskUsage(KeeperCommand, frozen=True):
    """What the namespace was used for in each hour, by all processes together."""


@answer(228)
class UnitsLent(Answer, frozen=True):
    """What may be used until the next lease, in and out. connections: of the namespace at all others together."""

    amount_in: Amount
    amount_out: Amount
    connections: int


@command(203, UnitsLent)
class LeaseUnits(KeeperCommand, frozen=True):
    """Count what moved here since the last lease, and lend what is asked for. connections: of the namespace here."""

    moved: MovedCounts
    asked_in: LeaseAsked
    asked_out: LeaseAsked
    connections: int


# What nobody used


@push(152)
class UsesWanted(Push, frozen=True):
    """The keeper wants to know for how long nobody used what this id names (gateway/entity_uses.py)."""

    namespace: str
    question: int
    log_id: str


@command(202, Done)
class TellUses(KeeperCommand, frozen=True):
    """The answer to a question. None: this process saw no use."""

    question: int
    unused_ms: int | None


# Namespaces, which come and go while the service runs. Where there is no one namespace, its field is empty.


@answer(229)
class NamespacesTold(Answer, frozen=True):
    """namespaces: all that are served, as JSON (service/told_namespaces.py). version: grows with every change."""

    version: int
    namespaces: bytes


@command(204, NamespacesTold)
class FollowNamespaces(KeeperCommand, frozen=True):
    """Say which namespaces there are, and from then on each change."""


@push(153)
class NamespacesChanged(Push, frozen=True):
    """A namespace came or went. As NamespacesTold."""

    version: int
    namespaces: bytes


@command(205, Done, cost=Cost.END)
class NamespacesApplied(KeeperCommand, frozen=True):
    """What that version says is served here, and nothing else."""

    version: int


@command(206, Done)
class CreateNamespace(KeeperCommand, frozen=True):
    """Make a namespace (gateway/namespace_management.py); answered when every process serves it. key: in clear."""

    hostnames: tuple[str, ...]
    profile: str
    key: str
    held: int
    maximum: int


@command(207, Done)
class DeleteNamespace(KeeperCommand, frozen=True):
    """Delete a namespace with all that it holds."""


@command(223, Done)
class RestoreNamespace(KeeperCommand, frozen=True):
    """Begin to restore a namespace (gateway/namespace_management.py); answered when it has begun.

    source: the folder of a backup, as the keeper's machine knows it.
    """

    source: str


@answer(241)
class RestoreTold(Answer, frozen=True):
    """As RestoreState of gateway/namespace_management.py."""

    copied_bytes: int
    size_bytes: int
    is_over: bool
    problem: str


@command(161, RestoreTold)
class AskRestore(KeeperCommand, frozen=True):
    """How far the newest restore of a namespace is."""

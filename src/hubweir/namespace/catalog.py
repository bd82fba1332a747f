"""The catalog: which entities there are and where they lie, as a deterministic state machine.

State = snapshot + replay of one log (catalog_operation.py); every holder of a copy applies the same operations in the
same order and has the same version. Nothing is checked against quotas here: an operation in the log is a fact.
namespace.py decides what becomes one.

After a crash: hubs whose status is CREATING or DELETING were caught between intent and commit; `unfinished` names
them, and the keeper of the catalog carries them on (promise P18).
"""

from __future__ import annotations

from dataclasses import replace

from hubweir.errors import CorruptStore
from hubweir.namespace.catalog_operation import (
    CatalogState,
    ChangeHub,
    CommitCreate,
    CommitDelete,
    IntendCreate,
    IntendDelete,
    NameNamespace,
    Operation,
    RecordUsage,
    SetGroups,
    SetRevoked,
    SetRules,
    SetUnits,
    decode_state,
    encode,
)
from hubweir.namespace.descriptions import EntityStatus, EventHubDescription, NamespaceDescription
from hubweir.namespace.event_hub_entry import EventHubEntry
from hubweir.namespace.resource_path import fold


class Catalog:
    """The entities of one namespace. version grows by one with every operation."""

    def __init__(self) -> None:
        self.version = 0
        self.namespace = NamespaceDescription("")
        self._usage: dict[int, tuple[int, ...]] = {}  # by the start of the hour
        self._hubs: dict[str, EventHubEntry] = {}  # by id, in the order they were made
        self._ids: dict[str, str] = {}  # lower-case name -> id

    def find(self, name: str) -> EventHubEntry | None:
        """The hub of this name in any case, whatever its status."""
        hub_id = self._ids.get(fold(name))
        return None if hub_id is None else self._hubs[hub_id]

    def hubs(self) -> tuple[EventHubEntry, ...]:
        """All hubs, whatever their status, in the order they were made."""
        return tuple(self._hubs.values())

    @property
    def usage(self) -> tuple[tuple[int, ...], ...]:
        """What the namespace used, a row of counts for each hour, oldest first (throughput_unit/usage.py)."""
        return tuple(self._usage.values())

    def unfinished(self) -> tuple[EventHubEntry, ...]:
        """The hubs that are being made or removed."""
        return tuple(hub for hub in self._hubs.values() if hub.description.status is not EntityStatus.ACTIVE)

    def apply(self, operation: Operation) -> None:
        """Change the state by one operation of the log.

        Raises CorruptStore when it does not fit what came before: the log is not the one that made this state.
        """
        match operation:
            case NameNamespace(name, created_at_ms):
                self.namespace = replace(self.namespace, name=name, created_at_ms=created_at_ms)
            case IntendCreate(hub_id, description, placements):
                if hub_id in self._hubs or fold(description.name) in self._ids:
                    raise CorruptStore(f"the catalog makes event hub '{description.name}' twice")
                being_made = replace(description, status=EntityStatus.CREATING)
                self._put(EventHubEntry(hub_id, being_made, placements))
            case CommitCreate(hub_id):
                self._change(hub_id, status=EntityStatus.ACTIVE)
            case IntendDelete(hub_id):
                self._change(hub_id, status=EntityStatus.DELETING)
            case CommitDelete(hub_id):
                del self._ids[fold(self._entry(hub_id).name)]
                del self._hubs[hub_id]
            case ChangeHub():
                known = self._entry(operation.hub_id).description
                availability, metadata = operation.availability, operation.user_metadata
                self._change(
                    operation.hub_id,
                    retention_ms=operation.retention_ms,
                    durability=operation.durability,
                    capture=operation.capture,
                    availability=known.availability if availability is None else availability,
                    user_metadata=known.user_metadata if metadata is None else metadata,
                    changed_at_ms=operation.changed_at_ms or known.changed_at_ms,
                )
            case SetGroups(hub_id, groups, details):
                known = self._entry(hub_id).description
                stay = set(groups) - {details.name if details is not None else None}
                kept = tuple(each for each in known.group_details if each.name in stay)
                self._change(
                    hub_id, consumer_groups=groups, group_details=kept if details is None else (*kept, details)
                )
            case SetRevoked(hub_id, publishers):
                self._change(hub_id, revoked_publishers=publishers)
            case SetRules(None, rules):
                self.namespace = replace(self.namespace, rules=rules)
            case SetRules(hub_id, rules):
                self._change(hub_id, rules=rules)
            case SetUnits(units):
                self.namespace = replace(self.namespace, units=units)
            case RecordUsage(hours, oldest_hour_ms):
                rows = {**self._usage, **{row[0]: row for row in hours if row}}
                self._usage = {hour_ms: rows[hour_ms] for hour_ms in sorted(rows) if hour_ms >= oldest_hour_ms}
        self.version += 1

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `restore`."""
        its = self.namespace
        return encode(
            CatalogState(self.version, its.name, its.created_at_ms, its.rules, self.hubs(), its.units, self.usage)
        )

    @classmethod
    def restore(cls, snapshot: bytes) -> Catalog:
        """The catalog that was saved. Raises NewerFormat or CorruptStore."""
        state = decode_state(snapshot)
        catalog = cls()
        catalog.version = state.version
        catalog.namespace = NamespaceDescription(state.name, state.rules, state.created_at_ms, state.units)
        catalog._usage = {row[0]: row for row in state.usage if row}
        for entry in state.hubs:
            catalog._put(entry)
        return catalog

    def _entry(self, hub_id: str | None) -> EventHubEntry:
        entry = self._hubs.get(hub_id or "")
        if entry is None:
            raise CorruptStore(f"the catalog changes event hub {hub_id}, which it does not have")
        return entry

    def _put(self, entry: EventHubEntry) -> None:
        self._hubs[entry.hub_id] = entry
        self._ids[fold(entry.name)] = entry.hub_id

    def _change(self, hub_id: str | None, **changes: object) -> None:
        entry = self._entry(hub_id)
        description: EventHubDescription = replace(entry.description, **changes)  # type: ignore[arg-type]
        self._hubs[entry.hub_id] = replace(entry, description=description)

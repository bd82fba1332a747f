"""The catalog: which entities there are and where they lie, as a deterministic state machine.

State = snapshot + replay of one log (catalog_operation.py); every holder of a copy applies the same operations in the
same order and has the same version. Nothing is judged here: an operation in the log is a fact. changes.py decides what
becomes one.

After a crash: entities whose status is CREATING or DELETING were caught between intent and commit; `unfinished` names
them, and the keeper of the catalog carries them on (promise P18).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hubweir.errors import CorruptStore
from hubweir.namespace.catalog_operation import (
    CatalogState,
    ChangeEntity,
    CommitCreate,
    CommitDelete,
    DescribeNamespace,
    IntendCreate,
    IntendDelete,
    Operation,
    RecordUsage,
    decode_state,
    encode,
)
from hubweir.namespace.entity import Entity, EntityStatus
from hubweir.namespace.kinds import Description
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold

StoredEntity = Entity[Description]


class Catalog:
    """The entities of one namespace. version grows by one with every operation."""

    def __init__(self) -> None:
        self.version = 0
        self.namespace = NamespaceDescription("")
        self._usage: dict[int, tuple[int, ...]] = {}  # by the start of the hour
        self._entities: dict[str, StoredEntity] = {}  # by id, in the order they were made
        self._ids: dict[str, str] = {}  # lower-case name -> id

    def find(self, name: str) -> StoredEntity | None:
        """The entity of this name in any case, whatever its status."""
        entity_id = self._ids.get(fold(name))
        return None if entity_id is None else self._entities[entity_id]

    def get(self, entity_id: str) -> StoredEntity | None:
        """The entity with this id, whatever its status."""
        return self._entities.get(entity_id)

    def entities(self) -> tuple[StoredEntity, ...]:
        """All entities, whatever their status, in the order they were made."""
        return tuple(self._entities.values())

    @property
    def usage(self) -> tuple[tuple[int, ...], ...]:
        """What the namespace used, a row of counts for each hour, oldest first (throughput_unit/usage.py)."""
        return tuple(self._usage.values())

    def unfinished(self) -> tuple[StoredEntity, ...]:
        """The entities that are being made or removed."""
        return tuple(entity for entity in self._entities.values() if not entity.is_served)

    def apply(self, operation: Operation) -> None:
        """Change the state by one operation of the log.

        Raises CorruptStore when it does not fit what came before: the log is not the one that made this state.
        """
        match operation:
            case DescribeNamespace(namespace):
                self.namespace = namespace
            case IntendCreate(entity_id, description, placements):
                if entity_id in self._entities or fold(description.name) in self._ids:
                    raise CorruptStore(f"the catalog makes {description.title} twice")
                self._put(Entity(entity_id, description, placements, EntityStatus.CREATING))
            case CommitCreate(entity_id):
                self._change(entity_id, status=EntityStatus.ACTIVE)
            case ChangeEntity(entity_id, description):
                known = self._entity(entity_id).description
                if (known.kind, known.name) != (description.kind, description.name):
                    raise CorruptStore(f"the catalog makes {description.title} out of {known.title}")
                self._change(entity_id, description=description)
            case IntendDelete(entity_id):
                self._change(entity_id, status=EntityStatus.DELETING)
            case CommitDelete(entity_id):
                del self._ids[fold(self._entity(entity_id).name)]
                del self._entities[entity_id]
            case RecordUsage(hours, oldest_hour_ms):
                rows = {**self._usage, **{row[0]: row for row in hours if row}}
                self._usage = {hour_ms: rows[hour_ms] for hour_ms in sorted(rows) if hour_ms >= oldest_hour_ms}
        self.version += 1

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `restore`."""
        return encode(CatalogState(self.version, self.namespace, self.entities(), self.usage))

    @classmethod
    def restore(cls, snapshot: bytes) -> Catalog:
        """The catalog that was saved. Raises NewerFormat, OldFormat or CorruptStore."""
        state = decode_state(snapshot)
        catalog = cls()
        catalog.version = state.version
        catalog.namespace = state.namespace
        catalog._usage = {row[0]: row for row in state.usage if row}
        for entity in state.entities:
            catalog._put(entity)
        return catalog

    def _entity(self, entity_id: str) -> StoredEntity:
        entity = self._entities.get(entity_id)
        if entity is None:
            raise CorruptStore(f"the catalog changes the entity {entity_id}, which it does not have")
        return entity

    def _put(self, entity: StoredEntity) -> None:
        self._entities[entity.entity_id] = entity
        self._ids[fold(entity.name)] = entity.entity_id

    def _change(self, entity_id: str, **changes: Any) -> None:
        self._entities[entity_id] = replace(self._entity(entity_id), **changes)

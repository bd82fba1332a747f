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
    MoveLog,
    Operation,
    PutRule,
    RecordUsage,
    RemoveRule,
    decode_state,
    encode,
)
from hubweir.namespace.entity import AnyEntity, Entity, EntityStatus, Placement
from hubweir.namespace.kinds import Description
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rules import SubscriptionRules

StoredEntity = Entity[Description]


class Catalog:
    """The entities of one namespace. version grows by one with every operation.

    newest: the name of the entity that the newest operation is about, "" for none.
    """

    def __init__(self) -> None:
        self.version = 0
        self.newest = ""
        self.namespace = NamespaceDescription("")
        self._usage: dict[int, tuple[int, ...]] = {}  # by the start of the hour
        self._entities: dict[str, StoredEntity] = {}  # by id, in the order they were made
        self._ids: dict[str, str] = {}  # lower-case name -> id
        self._inside: dict[str, dict[str, None]] = {}  # lower-case name -> ids of what belongs inside, in order
        self._rules: dict[str, SubscriptionRules] = {}  # by the id of the subscription

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

    def owner_of(self, log_id: str) -> StoredEntity | None:
        """The entity that has this log, whatever its status."""
        return next((each for each in self._entities.values() if each.placement(log_id) is not None), None)

    def inside(self, name: str) -> tuple[StoredEntity, ...]:
        """What belongs inside the entity of that name, in any case, whatever its status, in the order it was made."""
        return tuple(self._entities[entity_id] for entity_id in self._inside.get(fold(name), ()))

    def rules_of(self, entity_id: str) -> SubscriptionRules:
        """The rules of a subscription; none of any other entity."""
        return self._rules.get(entity_id) or SubscriptionRules()

    @property
    def size(self) -> int:
        """How many entities and rules a snapshot would hold."""
        return len(self._entities) + sum(map(len, self._rules.values()))

    @property
    def usage(self) -> tuple[tuple[int, ...], ...]:
        """What the namespace used, a row of counts for each hour, oldest first (throughput_unit/usage.py)."""
        return tuple(self._usage.values())

    def is_served(self, entity: AnyEntity) -> bool:
        """Whether clients may use an entity: it is made, and so is what it belongs inside."""
        parent = entity.description.parent
        outer = None if parent is None else self.find(parent)
        return entity.is_served and (outer is None or outer.is_served)

    def unfinished(self) -> tuple[StoredEntity, ...]:
        """The entities that are being made or removed."""
        return tuple(entity for entity in self._entities.values() if not entity.is_served)

    def apply(self, operation: Operation) -> None:
        """Change the state by one operation of the log.

        Raises CorruptStore when it does not fit what came before: the log is not the one that made this state.
        """
        self.newest = self._name_in(operation)
        match operation:
            case DescribeNamespace(namespace):
                self.namespace = namespace
            case IntendCreate(entity_id, description, placements):
                if entity_id in self._entities or fold(description.name) in self._ids:
                    raise CorruptStore(f"the catalog makes {description.title} twice")
                self._put(Entity(entity_id, description, placements, EntityStatus.CREATING))
                if isinstance(description, SubscriptionDescription):
                    self._rules[entity_id] = SubscriptionRules([description.first_rule])
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
                self._forget(self._entity(entity_id))
            case MoveLog(entity_id, log_id, store_index):
                self._move(self._entity(entity_id), log_id, store_index)
            case PutRule(entity_id, rule):
                self._rules_of(entity_id).put(rule)
            case RemoveRule(entity_id, name):
                if not self._rules_of(entity_id).remove(name):
                    raise CorruptStore(f"the catalog removes a rule of {entity_id} that is not there")
            case RecordUsage(hours, oldest_hour_ms):
                rows = {**self._usage, **{row[0]: row for row in hours if row}}
                self._usage = {hour_ms: rows[hour_ms] for hour_ms in sorted(rows) if hour_ms >= oldest_hour_ms}
        self.version += 1

    def _name_in(self, operation: Operation) -> str:
        """Of the entity that an operation is about."""
        if isinstance(operation, IntendCreate):
            return operation.description.name
        entity = self._entities.get(getattr(operation, "entity_id", ""))
        return "" if entity is None else entity.name

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `restore`."""
        rules = {entity_id: tuple(rules) for entity_id, rules in self._rules.items()}
        return encode(CatalogState(self.version, self.namespace, self.entities(), self.usage, rules))

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
        for entity_id, rules in state.subscription_rules.items():
            catalog._rules[entity_id] = SubscriptionRules(rules)
        return catalog

    def _entity(self, entity_id: str) -> StoredEntity:
        entity = self._entities.get(entity_id)
        if entity is None:
            raise CorruptStore(f"the catalog changes the entity {entity_id}, which it does not have")
        return entity

    def _put(self, entity: StoredEntity) -> None:
        self._entities[entity.entity_id] = entity
        self._ids[fold(entity.name)] = entity.entity_id
        parent = entity.description.parent
        if parent is not None:
            self._inside.setdefault(fold(parent), {})[entity.entity_id] = None

    def _move(self, entity: StoredEntity, log_id: str, store_index: int) -> None:
        if entity.placement(log_id) is None:
            raise CorruptStore(f"the catalog moves the log {log_id}, which {entity.entity_id} does not have")
        moved = Placement(log_id, store_index)
        placements = tuple(moved if each.log_id == log_id else each for each in entity.placements)
        self._change(entity.entity_id, placements=placements)

    def _forget(self, entity: StoredEntity) -> None:
        """An entity is gone, with what belongs inside it."""
        for each in self.inside(entity.name):
            self._forget(each)
        self._inside.pop(fold(entity.name), None)
        parent = entity.description.parent
        if parent is not None:
            self._inside[fold(parent)].pop(entity.entity_id, None)
        self._rules.pop(entity.entity_id, None)
        del self._ids[fold(entity.name)]
        del self._entities[entity.entity_id]

    def _rules_of(self, entity_id: str) -> SubscriptionRules:
        rules = self._rules.get(entity_id)
        if rules is None:
            raise CorruptStore(f"the catalog changes a rule of {entity_id}, which is no subscription")
        return rules

    def _change(self, entity_id: str, **changes: Any) -> None:
        self._entities[entity_id] = replace(self._entity(entity_id), **changes)

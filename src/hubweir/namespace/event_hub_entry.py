"""One event hub as the catalog holds it: what the operator set, and where its partitions lie."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.descriptions import EventHubDescription


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one partition lies: its log in one messaging store. A store, never a process."""

    log_id: str
    store_index: int


@dataclass(frozen=True, slots=True)
class EventHubEntry:
    """hub_id: generated, never used twice. placements: one a partition, in order of partition ids."""

    hub_id: str
    description: EventHubDescription
    placements: tuple[Placement, ...]

    @property
    def name(self) -> str:
        return self.description.name

"""The kinds of entities that a catalog may hold. A new kind gets its line here; docs/extending.md says what else."""

from __future__ import annotations

from hubweir.namespace.event_hub_description import EventHubDescription

# Of one entity, told apart by its tag: a union of structs, as soon as there are two.
Description = EventHubDescription

"""An entity as the catalog holds it: its kind, what its operator set, and where its logs are.

Each kind has a module with its description, a struct whose tag names the kind on disk: an event hub's is
event_hub_description.py. kinds.py lists them. What all kinds have in common stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import ClassVar, Generic, Self, TypeVar, cast

import msgspec

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, ENTITY_EXISTS, ServiceError
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.iso_duration import WrittenDuration, duration_text
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.tiers import Profile

USER_METADATA_LIMIT = 1_024


class EntityKind(Enum):
    """What an entity is. The value is the tag of its description on disk: never change one."""

    EVENT_HUB = "event-hub"
    QUEUE = "queue"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"

    @property
    def noun(self) -> str:
        """As texts have it: `event hub`."""
        return self.value.replace("-", " ")


class EntityStatus(IntEnum):
    """Where an entity is in its life. Kept in the catalog: never change a number."""

    CREATING = 1  # intent written: its logs are being made; not yet served
    ACTIVE = 2
    DELETING = 3  # intent written: its logs are being removed; not served any more


class Availability(IntEnum):
    """What an operator lets an entity take part in. Kept in the catalog: never change a number."""

    ACTIVE = 1
    DISABLED = 2
    SEND_DISABLED = 3
    RECEIVE_DISABLED = 4

    @property
    def text(self) -> str:
        """As the service's descriptions have it: Active, Disabled, SendDisabled, ReceiveDisabled."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class EntityDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator may set on an entity of any kind. Each kind's own description begins with the name.

    created_at_ms: set when the entity is made. changed_at_ms: of its newest change; 0: it never was changed.
    """

    kind: ClassVar[EntityKind]

    name: str
    created_at_ms: int = 0
    changed_at_ms: int = 0
    availability: Availability = Availability.ACTIVE
    user_metadata: str = ""
    rules: tuple[AuthorizationRuleDescription, ...] = ()

    @property
    def title(self) -> str:
        """How texts name the entity: `Event hub 'orders'`."""
        return f"{self.kind.noun.capitalize()} '{self.name}'"

    @property
    def parent(self) -> str | None:
        """The name of the entity that this one belongs inside, as a subscription does in its topic; None of most."""
        return None

    @property
    def updated_at_ms(self) -> int:
        """When it was changed, or else made."""
        return self.changed_at_ms or self.created_at_ms

    def log_count(self, profile: Profile) -> int:
        """How many logs a new entity of a namespace lies in, each with a placement. profile: the namespace's."""
        raise NotImplementedError

    def checked(self, existing: Sequence[AnyEntity], context: ChangeContext) -> Self:
        """The description of an entity that is to be made, when it is legal, its name free, and the quotas allow it.

        existing: all entities, whatever their status. Raises ServiceError with the entity, the range and the way out.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one log of an entity lies: in which messaging store. A store, never a process."""

    log_id: str
    store_index: int


D_co = TypeVar("D_co", bound=EntityDescription, covariant=True)
K = TypeVar("K", bound=EntityDescription)


class Entity(msgspec.Struct, Generic[D_co], frozen=True):
    """entity_id: generated, never used twice. placements: one a log; of an event hub in order of partition ids."""

    entity_id: str
    description: D_co
    placements: tuple[Placement, ...]
    status: EntityStatus

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def kind(self) -> EntityKind:
        return self.description.kind

    def placement(self, log_id: str) -> Placement | None:
        """Where one of its logs lies; None when it is not one of its logs."""
        return next((each for each in self.placements if each.log_id == log_id), None)

    @property
    def is_served(self) -> bool:
        return self.status is EntityStatus.ACTIVE


AnyEntity = Entity[EntityDescription]


def of_kind(entity: AnyEntity | None, kind: type[K]) -> Entity[K] | None:
    """The entity, when it is of that kind; kind: the class of its description, EntityDescription for any."""
    if entity is None or not isinstance(entity.description, kind):
        return None
    return cast("Entity[K]", entity)


def check_name_is_free(description: EntityDescription, existing: Sequence[AnyEntity]) -> None:
    """Raise ServiceError ENTITY_EXISTS when an entity has the name, in any case, or one would lie inside the other:
    the rights of a path hold for everything below it."""
    folded = fold(description.name)
    for entity in existing:
        other = fold(entity.name)
        if other == folded:
            raise ServiceError(ENTITY_EXISTS, f"{entity.description.title} {_TAKEN[entity.status]}.")
        if other.startswith(folded + "/") or folded.startswith(other + "/"):
            its = f"the {entity.kind.noun} '{entity.name}'"
            raise ServiceError(
                ENTITY_EXISTS, f"'{description.name}' and {its} would lie inside one another: rename it."
            )


def check_user_metadata(title: str, text: str) -> str:
    """The text that its owner keeps with an entity, or a part of it, when it is not too long. title: whose it is."""
    if len(text) > USER_METADATA_LIMIT:
        raise out_of_range(
            title, f"the user metadata has {len(text)} characters; at most {USER_METADATA_LIMIT} are allowed"
        )
    return text


def check_span(title: str, setting: str, span: WrittenDuration, *, least_ms: int, most_ms: int) -> None:
    """Raise ServiceError ARGUMENT_OUT_OF_RANGE for a length of time outside its range. title: of the entity."""
    if not least_ms <= span.ms <= most_ms:
        allowed = f"{duration_text(least_ms)} to {duration_text(most_ms)} are allowed"
        raise out_of_range(title, f"{setting} is {span.text}; {allowed}")


def parse_availability(text: str) -> Availability:
    """The availability of that name in any case. Raises ServiceError ARGUMENT_ERROR with what there is."""
    for each in Availability:
        if each.text.casefold() == text.casefold():
            return each
    allowed = ", ".join(each.text for each in Availability)
    raise ServiceError(ARGUMENT_ERROR, f"There is no status {text[:32]!r}; use one of {allowed}.")


def out_of_range(title: str, what: str) -> ServiceError:
    """A setting that no entity may have. title: of the entity."""
    return ServiceError(ARGUMENT_OUT_OF_RANGE, f"{title}: {what}.")


_TAKEN = {
    EntityStatus.CREATING: "is being created",
    EntityStatus.ACTIVE: "exists already",
    EntityStatus.DELETING: "is being deleted: try again in a moment",
}

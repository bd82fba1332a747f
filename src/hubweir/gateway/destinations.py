"""Reasons why messages cannot go where they are forwarded to, or were sent by way of another entity."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import ENTITY_DISABLED, ServiceError
from hubweir.gateway.fragments import FragmentPlace
from hubweir.namespace.availability import check_may_send
from hubweir.namespace.entity import Entity, EntityKind
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.namespace import Namespace

GONE, DISABLED = "MessagingEntityNotFoundException", "MessagingEntityDisabledException"


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """Why a destination takes nothing, for good."""

    reason: str
    description: str


def undeliverable(there: Entity[MessagingDescription] | None, name: str) -> Undeliverable | None:
    """Why nothing can go to the entity of this name; None: it can. there: the entity; None: it is gone."""
    if there is None:
        return Undeliverable(GONE, f"There is no queue or topic '{name}' any more.")
    try:
        check_may_send(there.description)
    except ServiceError as refusal:
        return Undeliverable(DISABLED, refusal.text)
    return None


class Way:
    """By way of one entity to another. via: where that lives; what it cannot give on are its transfer dead letters."""

    def __init__(
        self,
        namespace: Namespace,
        entity: Entity[MessagingDescription],
        via: FragmentPlace,
        destination: Entity[MessagingDescription],
    ) -> None:
        """entity: the one in between."""
        self._namespace = namespace
        self._entity = entity
        self._destination = destination
        self.via = via

    def undeliverable(self) -> Undeliverable | None:
        """Why nothing can go there now; None: it can.

        Raises ServiceError ENTITY_DISABLED where it cannot, and the entity in between is a topic: those have no
        transfer dead letters.
        """
        name = self._destination.description.name
        found = self._namespace.find(name, MessagingDescription)
        if found is not None and found.entity_id != self._destination.entity_id:
            found = None  # another one of that name
        why = undeliverable(found, name)
        if why is not None and self._entity.kind is EntityKind.TOPIC:
            text = f"{self._entity.description.title} cannot keep what is sent by way of it: {why.description}"
            raise ServiceError(ENTITY_DISABLED, text)
        return why

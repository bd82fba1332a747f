"""Says whether an entity takes events or messages and gives them out, as its operator set it.

| status          | sending | receiving |
|-----------------|---------|-----------|
| Active          | yes     | yes       |
| Disabled        | no      | no        |
| SendDisabled    | no      | yes       |
| ReceiveDisabled | yes     | no        |

What an entity holds stays, and so does its management. Links that may not stand any more end at the change.
"""

from __future__ import annotations

from hubweir.errors import ENTITY_DISABLED, ServiceError
from hubweir.namespace.entity import Availability, EntityDescription, EntityKind


def check_may_send(entity: EntityDescription) -> None:
    """Raise ServiceError ENTITY_DISABLED when the entity takes nothing."""
    _check(entity, Availability.SEND_DISABLED, "takes no {}")


def check_may_receive(entity: EntityDescription) -> None:
    """Raise ServiceError ENTITY_DISABLED when the entity gives nothing out."""
    _check(entity, Availability.RECEIVE_DISABLED, "gives no {} out")


def _check(entity: EntityDescription, half: Availability, effect: str) -> None:
    if entity.availability in (half, Availability.DISABLED):
        content = "events" if entity.kind is EntityKind.EVENT_HUB else "messages"
        status = f"its status is {entity.availability.text}. Set it to Active."
        raise ServiceError(ENTITY_DISABLED, f"{entity.title} {effect.format(content)}: {status}")

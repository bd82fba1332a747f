"""Whether a hub takes events and gives them out, as its operator set it.

| status          | sending | receiving |
|-----------------|---------|-----------|
| Active          | yes     | yes       |
| Disabled        | no      | no        |
| SendDisabled    | no      | yes       |
| ReceiveDisabled | yes     | no        |

What a hub holds stays, and so does its management. Links that may not stand any more end at the change.
"""

from __future__ import annotations

from hubweir.errors import ENTITY_DISABLED, ServiceError
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import EventHubDescription


def check_may_send(hub: EventHubDescription) -> None:
    """Raise ServiceError ENTITY_DISABLED when the hub takes no events."""
    _check(hub, Availability.SEND_DISABLED, "takes no events")


def check_may_receive(hub: EventHubDescription) -> None:
    """Raise ServiceError ENTITY_DISABLED when the hub gives no events out."""
    _check(hub, Availability.RECEIVE_DISABLED, "gives no events out")


def _check(hub: EventHubDescription, half: Availability, effect: str) -> None:
    if hub.availability in (half, Availability.DISABLED):
        text = f"Event hub '{hub.name}' {effect}: its status is {hub.availability.text}. Set it to Active."
        raise ServiceError(ENTITY_DISABLED, text)

"""Publishers of a hub: a name that has its own tokens, its own partition, and can be revoked.

A publisher exists when somebody sends as it. Its name is the partition key of all its events. Who is revoked may not
send: links of that name end, new ones and tokens for it are refused, whatever key they were signed with; events that
were taken stay. Names are compared without case (A to Z), as scopes of tokens are: writing one in another case is no
way round.
"""

from __future__ import annotations

from hubweir.errors import INVALID_FIELD, UNAUTHORIZED, ServiceError
from hubweir.namespace.error_text import printable
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.names import PUBLISHER_NAME_LIMIT
from hubweir.namespace.resource_path import fold


def check_publisher(hub: EventHubDescription, publisher: str) -> None:
    """Raise ServiceError unless this publisher may send: INVALID_FIELD (too long a name) or UNAUTHORIZED (revoked)."""
    if len(publisher) > PUBLISHER_NAME_LIMIT:
        text = f"The publisher's name has {len(publisher)} characters; {PUBLISHER_NAME_LIMIT} are allowed."
        raise ServiceError(INVALID_FIELD, text)
    if is_revoked(hub, publisher):
        text = f"The publisher '{printable(publisher)}' of event hub '{hub.name}' was revoked. Ask who manages the hub."
        raise ServiceError(UNAUTHORIZED, text)


def is_revoked(hub: EventHubDescription, publisher: str) -> bool:
    """Whether this publisher is one of the revoked."""
    folded = fold(publisher)
    return any(fold(revoked) == folded for revoked in hub.revoked_publishers)

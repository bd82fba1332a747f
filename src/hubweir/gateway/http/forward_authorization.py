"""Checks the right to set a destination of forwarding: a second token in a header proves it, for the destination.

The profiles `development` and `official-emulator` ask for none, and look at none: their clients have one key for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.auth.claims import Claims
from hubweir.auth.resource_scope import Scope
from hubweir.errors import UNAUTHORIZED, ServiceError
from hubweir.gateway.http.exchange import Request
from hubweir.namespace.forward_address import forward_name
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.tiers import OFFICIAL_EMULATOR

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

FORWARD_HEADER = b"servicebussupplementaryauthorization"
DEAD_LETTER_HEADER = b"servicebusdlqsupplementaryauthorization"


def check_forwarding(gateway: Gateway, request: Request, wanted: MessagingDescription) -> None:
    """Raise ServiceError UNAUTHORIZED when a destination is named without a token that manages it."""
    profile = gateway.namespace.profile
    if not profile.has_quotas or profile is OFFICIAL_EMULATOR:
        return
    delivery = delivery_of(wanted)
    for header, text in ((FORWARD_HEADER, delivery.forward_to), (DEAD_LETTER_HEADER, delivery.forward_dead_letters_to)):
        if text:
            _check(gateway, request.header(header), forward_name(text))


def _check(gateway: Gateway, token: str | None, name: str) -> None:
    host = fold(gateway.settings.host_name)
    resource = Scope(host, tuple(fold(segment) for segment in name.split("/")))
    if token is None:
        text = f"Forwarding to '{resource.uri}' needs a token that manages it, in the header of its own."
        raise ServiceError(UNAUTHORIZED, text)
    claims = Claims()
    claims.put(resource, gateway.authorization.verify(token))
    claims.check(Rights.MANAGE, resource, gateway.authorization.now_ms())

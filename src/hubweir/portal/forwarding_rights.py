"""Checks that a session may have an entity forward: it must manage the destination, too, as over HTTP.

The profiles `development` and `official-emulator` ask for nothing more: their clients have one key for all.
"""

from __future__ import annotations

from hubweir.namespace.forward_address import forward_name
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of
from hubweir.namespace.rights import Rights
from hubweir.namespace.tiers import OFFICIAL_EMULATOR
from hubweir.portal.visit import Visit


def check_may_forward(visit: Visit, wanted: MessagingDescription) -> None:
    """Raise ServiceError UNAUTHORIZED for a destination that the session does not manage."""
    profile = visit.gateway.namespace.profile
    if not profile.has_quotas or profile is OFFICIAL_EMULATOR:
        return
    delivery = delivery_of(wanted)
    for text in filter(None, (delivery.forward_to, delivery.forward_dead_letters_to)):
        visit.check(Rights.MANAGE, forward_name(text))

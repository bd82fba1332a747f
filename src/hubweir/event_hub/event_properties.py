"""Limits of one event's properties. They hold at every door.

The ingest kernel holds every event against them as it is encoded (kernels/contract.py); a door that writes the message
itself may refuse earlier. Bodies have no limit but the publication's.
"""

from __future__ import annotations

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.kernels.contract import PROPERTIES_LIMIT, PROPERTY_LIMIT


def properties_too_large(hub: str) -> ServiceError:
    """What a publication with such an event is refused with."""
    return ServiceError(
        ARGUMENT_ERROR,
        f"An event for '{hub}' has too large properties: at most {PROPERTY_LIMIT} bytes are allowed for one with its "
        f"name, and {PROPERTIES_LIMIT} for all of them with the annotations. Nothing of this send was stored. Put more "
        "into the body.",
    )

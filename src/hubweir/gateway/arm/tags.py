"""Location and tags of a namespace, as ARM keeps them: a name of a region, and pairs of names and values.

Nothing goes by them here; whoever set them finds them again. The limits are ARM's. (Use tags to organize your Azure
resources: limitations)
"""

from __future__ import annotations

import re

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.arm.members import Members
from hubweir.gateway.keeper.keeper import Tags
from hubweir.namespace.resource_path import fold

TAGS_LIMIT, NAME_LIMIT, VALUE_LIMIT = 50, 512, 256
LOCATION_LIMIT = 64  # longer than the name of any region
UNTOLD = "local"  # the location of a namespace that was told none
_NOT_IN_NAMES = re.compile(r"[<>%&\\?/\x00-\x1f]")


def wanted_tags(members: Members) -> Tags | None:
    """The tags that a request gives a namespace, in its order; None: it says nothing of them. ServiceError."""
    found = members.own_texts("tags")
    if found is None:
        return None
    if len(found) > TAGS_LIMIT:
        raise _wrong(f"There are {len(found)} tags; at most {TAGS_LIMIT} are allowed.")
    for name, value in found.items():
        if not 0 < len(name) <= NAME_LIMIT or _NOT_IN_NAMES.search(name):
            text = f"The name of the tag '{name[:64]}' needs 1 to {NAME_LIMIT} characters, and none of < > % & \\ ? /."
            raise _wrong(text)
        if len(value) > VALUE_LIMIT:
            raise _wrong(f"The tag '{name[:64]}' has {len(value)} characters; at most {VALUE_LIMIT} are allowed.")
    if len({fold(name) for name in found}) < len(found):
        raise _wrong("Two tags have one name: their case makes no difference.")
    return tuple(found.items())


def wanted_location(members: Members) -> str | None:
    """The location that a request gives; None: it gives none. ServiceError."""
    found = members.text("location")
    if found is not None and len(found) > LOCATION_LIMIT:
        raise _wrong(f"The location has {len(found)} characters; at most {LOCATION_LIMIT} are allowed.")
    return found or None


def check_location(namespace: str, known: str, wanted: str | None) -> None:
    """ServiceError when a namespace is somewhere else than is wanted: a location never changes.

    `West Europe` is `westeurope`.
    """
    if known and wanted and _plain(known) != _plain(wanted):
        text = (
            f"The namespace '{namespace}' is in the location '{known}', and stays there: leave the location out, or "
            "make another namespace."
        )
        raise _wrong(text)


def _plain(location: str) -> str:
    return fold(location.replace(" ", ""))


def _wrong(text: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, text)

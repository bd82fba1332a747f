"""Settings that a changer asked for: those that it wants otherwise than it saw them, and no others.

Whoever changes an entity looks at it first, and says the whole of it: what was changed besides is in there as it was
seen. So a change has with it what was seen, and the catalog's writer, when its turn comes, sets what differs in the
entity as that is by then. Of two changes of one setting the later one holds.
"""

from __future__ import annotations

from dataclasses import fields
from dataclasses import replace as replace_fields
from typing import Any, TypeVar

from msgspec.structs import replace

from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.storage_settings import StorageSettings

K = TypeVar("K", bound=EntityDescription)

# Fields of a description that are several settings each.
_SEVERAL = (CaptureDescription, DeliverySettings, StorageSettings)


def asked_settings(known: K, wanted: K, seen: K | None) -> K:
    """known, the entity by now, with what wanted has otherwise than seen, which it was made from.

    None: all of wanted is asked for.
    """
    if seen is None:
        return wanted
    names = known.__struct_fields__
    return replace(known, **{name: _asked(*(getattr(each, name) for each in (known, wanted, seen))) for name in names})


def _asked(known: Any, wanted: Any, seen: Any) -> Any:
    if wanted == seen:
        return known
    if not all(isinstance(each, _SEVERAL) for each in (known, wanted, seen)):  # a setting, or no capture before
        return wanted
    names = [field.name for field in fields(known)]
    inner = {name: _asked(*(getattr(each, name) for each in (known, wanted, seen))) for name in names}
    return replace_fields(known, **inner)

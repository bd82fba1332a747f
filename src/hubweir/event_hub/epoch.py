"""Decides which reader may read a partition in a consumer group: who is refused, and who has to make room.

| readers there           | who comes              | what happens |
|-------------------------|------------------------|--------------|
| none                    | anyone                 | may read |
| up to 4 without epoch   | without epoch          | may read beside them |
| 5 without epoch         | without epoch          | refused, RESOURCE_LIMIT; the text lists who is there |
| some without epoch      | with epoch             | may read; all of them are displaced |
| one with epoch e        | without epoch          | refused, LINK_STOLEN |
| one with epoch e        | with epoch f, f >= e   | may read; the one is displaced (an equal epoch wins) |
| one with epoch e        | with epoch f, f < e    | refused, LINK_STOLEN, with the text that clients match |

Epoch 0 counts as an epoch. Nothing is remembered: when the reader with an epoch leaves, anyone may come.
Displaced readers get LINK_STOLEN. Names are what clients call their readers, `nil` where they gave none.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.errors import LINK_STOLEN, RESOURCE_LIMIT, ServiceError
from hubweir.event_hub.consumer_group import Reader
from hubweir.namespace.error_text import printable

# Of one partition in one consumer group, all without an epoch. (Event Hubs quotas)
READERS_PER_GROUP_LIMIT = 5
UNNAMED = "nil"


def displaced_by(existing: Sequence[Reader], *, name: str | None, epoch: int | None) -> list[Reader]:
    """The readers that make room for a new one, in the order they came; [] when nobody has to.

    existing: the readers of the partition in the new one's group. Raises ServiceError LINK_STOLEN or RESOURCE_LIMIT
    when it is the new one that may not read.
    """
    holder = next((reader for reader in existing if reader.epoch is not None), None)
    if epoch is not None:
        if holder is not None and holder.epoch is not None and epoch < holder.epoch:
            raise ServiceError(LINK_STOLEN, _lower_epoch(holder, name, epoch))
        return list(existing)
    if holder is not None:
        text = (
            f"Receiver '{shown(holder.name)}' with epoch '{holder.epoch}' reads this partition alone. Receiver "
            f"'{shown(name)}' without an epoch cannot be created: read in another consumer group, or give an epoch "
            "that is not lower."
        )
        raise ServiceError(LINK_STOLEN, text)
    if len(existing) >= READERS_PER_GROUP_LIMIT:
        names = ", ".join(shown(reader.name) for reader in existing)
        text = (
            f"Consumer group '{existing[0].group}' has {READERS_PER_GROUP_LIMIT} receivers on this partition, which is "
            f"the limit. They are: {names}. Close one of them, or read in another consumer group."
        )
        raise ServiceError(RESOURCE_LIMIT, text)
    return []


def displacement(loser: Reader, *, name: str | None, epoch: int | None) -> ServiceError:
    """What a displaced reader is told. name, epoch: of the one that took its place."""
    held = "without an epoch" if loser.epoch is None else f"with epoch '{loser.epoch}'"
    text = (
        f"Receiver '{shown(name)}' with epoch '{epoch}', which is higher or equal, was created, so receiver "
        f"'{shown(loser.name)}' {held} is disconnected. To read here again, attach with an epoch that is not lower."
    )
    return ServiceError(LINK_STOLEN, text)


def shown(name: str | None) -> str:
    """A reader's name as texts give it."""
    return printable(name) if name else UNNAMED


def _lower_epoch(holder: Reader, name: str | None, epoch: int) -> str:
    """Clients match this text letter for letter: the holder's epoch is quoted, the other one is not."""
    return (
        f"Receiver '{shown(holder.name)}' with a higher epoch '{holder.epoch}' already exists. Receiver "
        f"'{shown(name)}' with epoch {epoch} cannot be created. Make sure you are creating receiver with increasing "
        "epoch value to ensure connectivity, or ensure all old epoch receivers are closed or disconnected"
    )

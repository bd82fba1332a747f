"""Errors of a store as the refusals that a gateway gets: which condition, and whether something may be stored."""

from __future__ import annotations

from hubweir.broker.commands import Refusal
from hubweir.errors import (
    ENTITY_MOVED,
    INTERNAL_ERROR,
    RESOURCE_LIMIT,
    STORE_OFFLINE,
    Condition,
    CorruptStore,
    DiskFull,
    HubweirError,
    LogFenced,
    LogOffline,
    ServiceError,
)

# The most special class first: DiskFull is a LogOffline.
CONDITION_OF: tuple[tuple[type[HubweirError], Condition], ...] = (
    (DiskFull, RESOURCE_LIMIT),
    (LogFenced, ENTITY_MOVED),
    (LogOffline, STORE_OFFLINE),
    (CorruptStore, INTERNAL_ERROR),
)


def refusal_of(error: HubweirError | OSError, *, known: bool = True) -> Refusal:
    """The refusal for an error; an OSError is the disk's, and INTERNAL_ERROR stands where the table has no line."""
    if isinstance(error, ServiceError):
        return Refusal(error.condition.symbol, error.text, known)
    if isinstance(error, OSError):
        return Refusal(STORE_OFFLINE.symbol, f"the messaging store cannot do this now: {error}", known)
    for kind, condition in CONDITION_OF:
        if isinstance(error, kind):
            return Refusal(condition.symbol, str(error), known)
    return Refusal(INTERNAL_ERROR.symbol, str(error), known)

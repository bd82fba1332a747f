"""Errors of a store as the refusals that a gateway gets: which condition, and whether something may be stored.

A full disk and a log that is being repaired both heal, so they get the condition that every official client waits on
and tries again: SERVER_BUSY. A quota's condition (resource-limit-exceeded) ends a send for good in most of them.
Clients never retry a condition that they do not know, so no private condition is used. The text says what is the
matter. (Client libraries' retry tables)
"""

from __future__ import annotations

from hubweir.broker.commands.process import Refusal
from hubweir.errors import (
    ENTITY_MOVED,
    INTERNAL_ERROR,
    SERVER_BUSY,
    STORE_OFFLINE,
    Condition,
    CorruptStore,
    HubweirError,
    LogFenced,
    LogLost,
    LogOffline,
    ServiceError,
)

# DiskFull and OutOfFiles are LogOffline, too.
CONDITION_OF: tuple[tuple[type[HubweirError], Condition], ...] = (
    (LogFenced, ENTITY_MOVED),
    (LogOffline, SERVER_BUSY),
    (LogLost, STORE_OFFLINE),
    (CorruptStore, INTERNAL_ERROR),
)


def refusal_of(error: HubweirError | OSError, *, known: bool = True) -> Refusal:
    """The refusal for an error; an OSError is the disk's, and INTERNAL_ERROR stands where the table has no line."""
    if isinstance(error, ServiceError):
        return Refusal(error.condition, error.text, known)
    if isinstance(error, OSError):
        return Refusal(STORE_OFFLINE, f"the messaging store cannot do this now: {error}", known)
    for kind, condition in CONDITION_OF:
        if isinstance(error, kind):
            return Refusal(condition, str(error), known)
    return Refusal(INTERNAL_ERROR, str(error), known)

"""Counts what one process did for each entity of a namespace: requests by how they ended, and what readers got.

Whoever serves a link asks once for its entity's traffic and adds to that: no call and no look-up where events go. What
names no entity that there is counts for the namespace, under the empty name: else strangers could make names up without
end (rule R17). After a crash everything begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY, Condition
from hubweir.metrics import (
    INCOMING_REQUESTS,
    OUTGOING_BYTES,
    OUTGOING_MESSAGES,
    QUOTA_EXCEEDED_ERRORS,
    SERVER_ERRORS,
    SUCCESSFUL_REQUESTS,
    THROTTLED_REQUESTS,
    USER_ERRORS,
    Samples,
)
from hubweir.namespace.namespace import Namespace

MEASURED_AT_ONCE = 1_000  # entities; some 1 us each
_REFUSED, _FAULT = 400, 500


class EntityTraffic(Struct):
    """Of one entity. Requests that are under way have come, and have not ended."""

    requests: int = 0
    successful: int = 0
    server_errors: int = 0
    user_errors: int = 0
    throttled: int = 0
    over_quota: int = 0
    messages_out: int = 0
    bytes_out: int = 0

    def refused(self, condition: Condition, requests: int = 1) -> None:
        """Requests that had come were refused."""
        if condition is SERVER_BUSY:
            self.throttled += requests
        elif condition is RESOURCE_LIMIT:
            self.over_quota += requests
        elif condition.http >= _FAULT:
            self.server_errors += requests
        else:
            self.user_errors += requests

    def answered(self, status: int) -> None:
        """A request over HTTP came, and was answered with this status."""
        self.requests += 1
        if status < _REFUSED:
            self.successful += 1
        elif status == SERVER_BUSY.http:
            self.throttled += 1
        elif status >= _FAULT:
            self.server_errors += 1
        else:
            self.user_errors += 1


class NamespaceTraffic:
    """The traffic of one namespace in this process, by the names of its entities as they were created."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._by_name: dict[str, EntityTraffic] = {}

    def of(self, name: str) -> EntityTraffic:
        """Of the entity of that name, in any case; of the namespace itself where there is none."""
        entity = self._namespace.find_any(name) if name else None
        known = "" if entity is None else entity.description.name
        traffic = self._by_name.get(known)
        if traffic is None:
            traffic = self._by_name[known] = EntityTraffic()
        return traffic

    def forget(self, name: str) -> None:
        """The entity is gone, by its name as created; one that gets the name later begins at 0."""
        self._by_name.pop(name, None)

    def measure(self, samples: Samples) -> Iterator[None]:
        """Say all of it, MEASURED_AT_ONCE entities a step. What never had a request has no sample."""
        namespace = self._namespace.description.name
        came, done, failed = samples[INCOMING_REQUESTS], samples[SUCCESSFUL_REQUESTS], samples[SERVER_ERRORS]
        refused, throttled, over = samples[USER_ERRORS], samples[THROTTLED_REQUESTS], samples[QUOTA_EXCEEDED_ERRORS]
        messages, sizes = samples[OUTGOING_MESSAGES], samples[OUTGOING_BYTES]
        for number, (name, traffic) in enumerate(tuple(self._by_name.items()), 1):
            labels = namespace, name
            came[labels] = traffic.requests
            done[labels] = traffic.successful
            failed[labels] = traffic.server_errors
            refused[labels] = traffic.user_errors
            throttled[labels] = traffic.throttled
            over[labels] = traffic.over_quota
            messages[labels] = traffic.messages_out
            sizes[labels] = traffic.bytes_out
            if number % MEASURED_AT_ONCE == 0:
                yield

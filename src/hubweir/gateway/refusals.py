"""Refusals: the reference that a peer sees and quotes, and the line in the log that has the same reference.

| what        | said of                                                       |
|-------------|---------------------------------------------------------------|
| connection  | a connection that this service ends, or a fault of its peer    |
| SASL        | a proof that is none                                          |
| attach      | a link that was asked for                                     |
| link        | a link that stood and was detached                            |
| send        | deliveries that were rejected                                 |
| token       | a token that was put to $cbs                                  |
| entity      | a good token that was put for an entity that is not there     |
| request     | another request to $cbs or $management                        |
| HTTP        | a request over HTTP                                           |

Every refusal gets its line, of the kind of its row (service_log.py), and conditions are counted apart: the log takes so
many of each in a minute. So a peer that is refused all the time hides no other, and cannot fill a disk: there are as
many kinds as rows here times conditions in errors.py. A line names no key, token or body, since no text of a refusal
does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum

from hubweir import service_log
from hubweir.env import Env
from hubweir.namespace.entity import EntityKind
from hubweir.namespace.error_text import Reference, entity_tracker, printable, with_reference

logger = logging.getLogger(__name__)

_ENTITY_LIMIT = 128
# How the references of the two services name entities; what is not there is taken for an event hub.
_SORTS: dict[EntityKind | None, str] = {
    EntityKind.QUEUE: "Queue",
    EntityKind.TOPIC: "Topic",
    EntityKind.SUBSCRIPTION: "Subscription",
}


class What(Enum):
    """Kinds of refused things: see the module's table."""

    CONNECTION = service_log.CONNECTION_REFUSED
    SASL = service_log.SASL_REFUSED
    ATTACH = service_log.ATTACH_REFUSED
    LINK = service_log.LINK_REFUSED
    SEND = service_log.SEND_REFUSED
    TOKEN = service_log.TOKEN_REFUSED
    ENTITY = service_log.NO_SUCH_ENTITY
    REQUEST = service_log.REQUEST_REFUSED
    HTTP = service_log.HTTP_REFUSED


class Refusals:
    """Makes the texts of refusals of one namespace, and has them logged."""

    def __init__(
        self,
        env: Env,
        *,
        namespace: str,
        process_id: int,
        kind_of: Callable[[str], EntityKind | None] = lambda name: None,
    ) -> None:
        """kind_of: of the entity of that name; None: there is none."""
        self._kind_of = kind_of
        self._env = env
        self._namespace = namespace
        self._process_id = process_id

    def describe(self, what: What, symbol: str, text: str, *, entity: str = "", peer: str) -> str:
        """The text with the reference that people quote, which is in the log now. entity: as the peer named it."""
        namespace, entity = self._namespace, printable(entity, _ENTITY_LIMIT)
        tracker = f"{namespace}:gateway{self._process_id}"
        if entity:
            tracker = entity_tracker(namespace, _SORTS.get(self._kind_of(entity), "eventhub"), entity)
        described = with_reference(text, Reference(self._env.new_id(), tracker, self._env.now_ms()))
        what.value.say(logger, condition=symbol, peer=peer or "unknown", entity=entity, text=described)
        return described

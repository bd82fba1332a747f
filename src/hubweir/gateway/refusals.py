"""Refusals: the reference that a peer sees and quotes, and the line in the log that has the same reference.

| what        | said of                                                       |
|-------------|---------------------------------------------------------------|
| connection  | a connection that this service ends, or a fault of its peer    |
| SASL        | a proof that is none                                          |
| attach      | a link that was asked for                                     |
| link        | a link that stood and was detached                            |
| send        | deliveries that were rejected                                 |
| request     | a request to $cbs or $management                              |
| HTTP        | a request over HTTP                                           |

Every refusal gets its line, as long as it is one of few: of one kind, which is what was refused and with which
condition, the log has LINES in WINDOW_MS. The rest of that time is counted, and a line at its end tells the count. So
a peer that is refused all the time hides no other kind, and cannot fill a disk: a kind takes at most 20 MB a day, and
there are as many kinds as rows here times conditions in errors.py. A line names no key, token or body, since no text of
a refusal does; what peers chose (names, addresses) is printed without control characters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial

from hubweir.env import Env
from hubweir.namespace.entity import EntityKind
from hubweir.namespace.error_text import Reference, entity_tracker, printable, with_reference

logger = logging.getLogger(__name__)

# Enough to see what goes on; a person who quotes an id has seen one of a few refusals.
LINES, WINDOW_MS = 10, 60_000
_TEXT_LIMIT, _ENTITY_LIMIT = 1_024, 128
# How the references of the two services name entities; what is not there is taken for an event hub.
_SORTS: dict[EntityKind | None, str] = {
    EntityKind.QUEUE: "Queue",
    EntityKind.TOPIC: "Topic",
    EntityKind.SUBSCRIPTION: "Subscription",
}


class What(Enum):
    """Kinds of refused things: see the module's table."""

    CONNECTION = "connection"
    SASL = "SASL"
    ATTACH = "attach"
    LINK = "link"
    SEND = "send"
    REQUEST = "request"
    HTTP = "HTTP"


class RefusalLog:
    """The lines of one process: see the module's text."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._counts: dict[tuple[What, str], int] = {}  # of the window that goes on, by kind

    def write(self, what: What, symbol: str, text: str, *, entity: str, peer: str) -> None:
        """Write a refusal's line, or count it. symbol: the condition, or an HTTP status. text: with its reference."""
        kind = (what, symbol)
        count = self._counts.get(kind, 0)
        self._counts[kind] = count + 1
        if not count:
            self._env.call_later(WINDOW_MS, partial(self._end, kind))
        if count < LINES:
            of = f", entity {entity!r}" if entity else ""
            half = _TEXT_LIMIT // 2
            said = text if len(text) <= _TEXT_LIMIT else f"{text[:half]} … {text[-half:]}"  # its end is the reference
            said = printable(said, len(said))
            logger.info("%s refused: %s, peer %s%s: %s", what.value, symbol, peer or "unknown", of, said)

    def _end(self, kind: tuple[What, str]) -> None:
        hidden = self._counts.pop(kind) - LINES
        if hidden > 0:
            seconds = WINDOW_MS // 1_000
            logger.info("%s refused: %s, %d more in %d s, not shown", kind[0].value, kind[1], hidden, seconds)


class Refusals:
    """Makes the texts of refusals of one namespace, and has them logged."""

    def __init__(
        self,
        env: Env,
        log: RefusalLog,
        *,
        namespace: str,
        process_id: int,
        kind_of: Callable[[str], EntityKind | None] = lambda name: None,
    ) -> None:
        """kind_of: of the entity of that name; None: there is none."""
        self._kind_of = kind_of
        self._env = env
        self._log = log
        self._namespace = namespace
        self._process_id = process_id

    def describe(self, what: What, symbol: str, text: str, *, entity: str = "", peer: str) -> str:
        """The text with the reference that people quote, which is in the log now. entity: as the peer named it."""
        namespace, entity = self._namespace, printable(entity, _ENTITY_LIMIT)
        tracker = f"{namespace}:gateway{self._process_id}"
        if entity:
            tracker = entity_tracker(namespace, _SORTS.get(self._kind_of(entity), "eventhub"), entity)
        described = with_reference(text, Reference(self._env.new_id(), tracker, self._env.now_ms()))
        self._log.write(what, symbol, described, entity=entity, peer=peer)
        return described

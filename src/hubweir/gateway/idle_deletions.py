"""Deletes queues, topics and subscriptions that nobody used for their AutoDeleteOnIdle, as an operator would.

One timer for all of a namespace's. Of each the time is known before which it cannot have been idle for its span; when
that has come, its brokers are asked for how long nobody used it (FragmentInfo.unused_ms); then the processes are asked
what they alone saw (entity_uses.py), and it is deleted, or its time moves on. Nothing but the monotonic clock counts,
so no jump of the wall clock deletes anything; and nothing is kept of it, so that idleness counts anew from a start.

Who uses an entity while it is being deleted is told that it is gone, as when an operator deletes it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from hubweir.broker.commands.fragment import FragmentInfo
from hubweir.env import Env, Timer
from hubweir.errors import ServiceError
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.directory import Directory
from hubweir.gateway.entity_counts import FragmentAnswer, ask_fragments
from hubweir.gateway.fragments import Fragments
from hubweir.gateway.keeper.uses_everywhere import UsesEverywhere
from hubweir.namespace.entity import Entity, EntityDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.namespace import Namespace

logger = logging.getLogger(__name__)

# Changes of the catalog come by the thousand when a deployment makes its entities: one look is for all of a second.
# An entity goes as much later than its span says.
GATHER_MS = 1_000
# A broker that is away, or a catalog that cannot be written, is not asked more often.
RETRY_MS = 30_000
# Questions of one look, and so deletions that are begun together: those that are left have the next one.
ASKED_AT_ONCE = 64
# Timers of the loop need not know of years.
WAIT_LIMIT_MS = 86_400_000


@dataclass(slots=True)
class _Watched:
    """An entity that has a span. due_ms: it cannot have been idle for so long before then."""

    entity_id: str
    fragments: Fragments
    span_ms: int
    due_ms: int

    @property
    def used_id(self) -> str:
        """Under which processes note what they see of its use."""
        return self.fragments.places[0].log_id


class IdleDeletions:
    """See the module's text. Begins with the gateway that it is made for."""

    def __init__(
        self, env: Env, namespace: Namespace, directory: Directory, keeper: CatalogKeeper, uses: UsesEverywhere
    ) -> None:
        self._env = env
        self._namespace = namespace
        self._directory = directory
        self._keeper = keeper
        self._uses = uses
        self._watched: dict[str, _Watched] = {}  # by entity id
        self._has_changed = False  # the catalog, since it was read here
        self._timer: Timer | None = None
        self._timer_at_ms = 0
        self._stopped = False
        self.catalog_changed()

    def catalog_changed(self) -> None:
        """Entities came, went, or have other spans."""
        self._has_changed = True
        self._look_at(self._env.monotonic_ms() + GATHER_MS)

    def stop(self) -> None:
        """Delete nothing more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    # Steps

    def _look_at(self, at_ms: int) -> None:
        """Look then, or earlier where that is to be."""
        if self._stopped or (self._timer is not None and self._timer_at_ms <= at_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        now_ms = self._env.monotonic_ms()
        self._timer_at_ms = min(max(at_ms, now_ms + GATHER_MS), now_ms + WAIT_LIMIT_MS)
        self._timer = self._env.call_later(self._timer_at_ms - now_ms, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ms = self._env.monotonic_ms()
        if self._has_changed:
            self._has_changed = False
            self._read_catalog(now_ms)
        due = sorted((each for each in self._watched.values() if each.due_ms <= now_ms), key=lambda each: each.due_ms)
        for each in due[:ASKED_AT_ONCE]:
            each.due_ms = now_ms + RETRY_MS
            ask_fragments(self._env, each.fragments, partial(self._answered, each))
        self._go_on()

    def _go_on(self) -> None:
        if self._watched:
            self._look_at(min(each.due_ms for each in self._watched.values()))

    def _read_catalog(self, now_ms: int) -> None:
        """Watch all that have a span; who has it newly was used just now: it was made or updated."""
        watched = {}
        for entity in self._namespace.entities(MessagingDescription):
            span = entity.description.auto_delete_on_idle
            if span.is_unlimited:
                continue
            known = self._watched.get(entity.entity_id)
            if known is None or known.span_ms != span.ms:
                fragments = self._directory.fragments(entity)
                known = _Watched(entity.entity_id, fragments, span.ms, now_ms + span.ms)
            watched[entity.entity_id] = known
        self._watched = watched
        self._uses.keep({each.used_id for each in watched.values()})

    def _answered(self, asked: _Watched, answers: list[FragmentAnswer]) -> None:
        """The brokers' words; a fragment that does not answer leaves the entity for later."""
        entity = self._still(asked)
        infos = [answer for answer in answers if isinstance(answer, FragmentInfo)]
        if entity is None or len(infos) < len(answers):
            return
        unused_ms = min(info.unused_ms for info in infos)
        if unused_ms < asked.span_ms:
            self._not_before(asked, unused_ms)
        else:
            self._uses.ask(asked.used_id, partial(self._seen, asked, unused_ms))

    def _seen(self, asked: _Watched, unused_ms: int, seen_ms: int | None) -> None:
        """What processes saw of the use of an entity that its broker has seen no use of for its span."""
        entity = self._still(asked)
        if entity is None:
            return
        unused_ms = unused_ms if seen_ms is None else min(unused_ms, seen_ms)
        if unused_ms >= asked.span_ms:
            span = entity.description.auto_delete_on_idle.text
            logger.info("%s is deleted: nobody used it for %s", entity.description.title, span)
            self._keeper.delete(entity.name, type(entity.description), _log_refusal)
        else:
            self._not_before(asked, unused_ms)

    def _not_before(self, asked: _Watched, unused_ms: int) -> None:
        """It was used since: its time moves on."""
        asked.due_ms = self._env.monotonic_ms() + asked.span_ms - unused_ms
        self._go_on()

    def _still(self, asked: _Watched) -> Entity[MessagingDescription] | None:
        """The entity that was asked about, unless it is gone or has another span meanwhile."""
        entity = self._namespace.find(asked.fragments.entity, MessagingDescription)
        if self._stopped or entity is None or entity.entity_id != asked.entity_id:
            return None
        return entity if entity.description.auto_delete_on_idle.ms == asked.span_ms else None


def _log_refusal(result: EntityDescription | ServiceError) -> None:
    if isinstance(result, ServiceError):
        logger.warning("not deleted yet: %s", result.text)

"""Changes the catalog for the whole gateway, and carries its changes on at the brokers. (Promise P18)

It is the keeper (keeper/keeper.py) of the process that writes the catalog.

Making and removing an entity takes steps, each of which a crash or a failure may interrupt. Creating: the intent in the
catalog, with a log id for every log → the brokers make the logs, which does nothing for a log that is there → the
commit. Deleting likewise. An intent found at start is carried on to its end. At start the brokers are told to open
every log of the entities that are made: what is lost of those is never made anew. What the catalog does not name they
leave alone. After a crash an entity is served or it is not: never with a part of its logs.

When a step fails (a disk that is full or sick for a moment), a creation is taken back and a deletion goes on. A step
that cannot be done now is done later: after 1 s, then ever later, up to every 30 s, until nothing is left. Who asked is
told at the first failure. "Nothing was changed" is said only where that is so; else that the service goes on with it.
Steps of one entity are done one after the other.
Long because a change, what may fail of it and what is done then are one thing to read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import replace as replace_fields
from typing import TypeVar

from msgspec.structs import replace

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.process import Refusal
from hubweir.broker.turns import Turns
from hubweir.env import Env, Timer
from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.catalog_lines import CatalogLines
from hubweir.gateway.entity_logs import LogCommands, SubscriptionLogs, logs_of
from hubweir.gateway.keeper.keeper import Tags
from hubweir.namespace.catalog_followers import CatalogFollowers
from hubweir.namespace.catalog_writer import CatalogWriter, OnNamespace, OnRemoved, OnRules, OnSubscriptionRule
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.changes import EntityChange, NamespaceChange, RuleChange
from hubweir.namespace.entity import AnyEntity, Entity, EntityDescription, EntityStatus, of_kind
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription, WantedRule

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=EntityDescription)
T = TypeVar("T")
OnDescription = Callable[[K | ServiceError], None]
OnRefusals = Callable[[list[Refusal]], None]

# A disk that fails is not asked more often than logs ask it.
FIRST_RETRY_MS, LAST_RETRY_MS = 1_000, 30_000


class CatalogKeeper:
    """Makes every change of one namespace's catalog. Every on_done is called once, on the loop."""

    def __init__(self, writer: CatalogWriter, brokers: Brokers, env: Env) -> None:
        self._writer = writer
        self._namespace = writer.namespace
        self._brokers = brokers
        self._env = env
        self._lines = CatalogLines(writer.namespace)
        self.on_removed: Callable[[AnyEntity], None] = _nobody_holds
        self._turns = Turns()  # by entity id
        self._taken_back: set[str] = set()  # ids of entities that are not to be made after all
        self._not_told: set[str] = set()  # ids of entities with a log that did not take the newest settings
        self._retry: Timer | None = None
        self._retry_ms = FIRST_RETRY_MS
        self._stopped = False

    @property
    def is_current(self) -> bool:
        """Always: here it is written."""
        return True

    @property
    def followers(self) -> CatalogFollowers:
        """The processes that have a copy of the catalog."""
        return self._writer.followers

    def snapshot(self) -> tuple[int, bytes]:
        """The catalog's version, and the whole of it as bytes."""
        return self._writer.snapshot()

    def start(self, on_done: Callable[[list[ServiceError]], None]) -> None:
        """Have the brokers open every log of the catalog, and carry on what a crash interrupted.

        on_done: with what could not be opened or carried on; the rest is served. Carrying on is tried again. What lies
        inside another entity is carried on when that is open.
        """
        problems: list[ServiceError] = []
        served = self._namespace.entities(EntityDescription)
        unfinished = self._namespace.unfinished()
        inside = [entity for entity in unfinished if entity.description.parent is not None]
        left = len(served) + len(unfinished)

        def finished(result: EntityDescription | ServiceError) -> None:
            nonlocal left
            left -= 1
            if isinstance(result, ServiceError):
                logger.error("at start: %s", result.text)
                problems.append(result)
            if not left:
                on_done(problems)
            elif left == len(inside):
                for entity in tuple(inside):
                    carry_on(entity)

        def carry_on(entity: AnyEntity) -> None:
            what = "made" if entity.status is EntityStatus.CREATING else "removed"
            logger.info("%s was being %s when the service ended", entity.description.title, what)
            self._finish(entity, finished)

        if not left:
            on_done(problems)
            return
        if left == len(inside):
            for entity in inside:
                carry_on(entity)
            return
        for entity in served:
            self._open(entity, finished)
        for entity in unfinished:
            if entity not in inside:
                carry_on(entity)

    def open_stores(self, stores: Container[int], on_done: Callable[[list[ServiceError]], None]) -> None:
        """Have every log opened that lies in one of these stores: their brokers came, or came back.

        on_done: with what could not be opened; the brokers go on trying. What was open stays so.
        """
        namespace = self._namespace.description.name
        commands = [
            (placement, command)
            for entity in self._namespace.entities(EntityDescription)
            for placement, command in logs_of(entity, self._namespace).open(namespace)
            if placement.store_index in stores
        ]
        self._submit_all(commands, lambda refusals: on_done([refusal.error for refusal in refusals]))

    def stop(self) -> None:
        """Try nothing again: the next start carries on."""
        self._stopped = True
        if self._retry is not None:
            self._retry.cancel()

    # What may be asked for

    def create(self, description: K, on_done: OnDescription[K]) -> None:
        """Make an entity; on_done when it is served and durable, or with why not and what is left of it.

        While a store is away, one of one log, or an event hub, goes to the others; one whose fragments would lie there,
        too, is refused. A refusal comes when no step of an entity of that name is under way: so whoever hears that
        there is one finds it made, or gone.
        """

        def refused(refusal: ServiceError) -> None:
            self._when_at_rest(description.name, lambda: on_done(refusal))

        brokers = self._brokers
        self._writer.begin_create(description, brokers.up, self._then_finish(on_done, refused), away=brokers.away)

    def delete(self, name: str, kind: type[K], on_done: OnDescription[K]) -> None:
        """Remove an entity and what it holds. From the intent on it is not served any more, and goes whatever fails."""
        self._writer.begin_delete(name, kind, self._then_finish(on_done, on_done))

    def change(self, name: str, kind: type[K], change: EntityChange[K], on_done: OnDescription[K]) -> None:
        """Change an entity first in the catalog, then at its brokers, as far as the change concerns them.

        change: see CatalogWriter. A broker that is away gets the settings at its next start, from the catalog.
        """
        before: list[K] = []

        def noted(known: K, context: ChangeContext) -> K:
            before[:] = [known]
            return change(known, context)

        def changed(result: Entity[K] | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_done(result)
                return
            (known,) = before
            self._lines.changed(known, result.description)
            told = logs_of(replace(result, description=known), self._namespace).change()
            # Settings that are set again are told again: a capture that waits for its next try tries at once.
            is_set = result.description.changed_at_ms != known.changed_at_ms
            if is_set or result.entity_id in self._not_told or told != logs_of(result, self._namespace).change():
                self._tell_settings(result, on_done)
            else:
                on_done(result.description)

        self._writer.change(name, kind, noted, changed)

    def change_rules(self, name: str | None, change: RuleChange, on_done: OnRules) -> None:
        """Change the authorization rules of an entity, or with None of the namespace. It bites at once."""

        def changed(result: RuleLevel | ServiceError) -> None:
            if not isinstance(result, ServiceError):
                self._lines.rules_changed(result)
            on_done(result)

        self._writer.change_rules(name, change, changed)

    def put_subscription_rule(self, subscription: str, wanted: WantedRule, on_done: OnSubscriptionRule) -> None:
        """Make a rule of a subscription, by its path, or replace the one of its name; see CatalogWriter.

        on_done when the topic goes by it, too.
        """

        def put(result: SubscriptionRuleDescription | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_done(result)
            else:
                self._lines.subscription_rule(subscription, result.name)
                self._tell_rules(subscription, lambda logs: logs.put_rule(result), result, on_done)

        self._writer.put_rule(subscription, wanted, put)

    def remove_subscription_rule(self, subscription: str, name: str, on_done: OnRemoved) -> None:
        """Remove a rule of a subscription; see CatalogWriter. on_done when the topic knows it no more, too."""

        def removed(refused: ServiceError | None) -> None:
            if refused is not None:
                on_done(refused)
            else:
                self._lines.subscription_rule(subscription, name, removed=True)
                self._tell_rules(subscription, lambda logs: logs.remove_rule(name), None, on_done)

        self._writer.remove_rule(subscription, name, removed)

    def _tell_rules(
        self,
        subscription: str,
        commands: Callable[[SubscriptionLogs], LogCommands],
        result: T,
        on_done: Callable[[T | ServiceError], None],
    ) -> None:
        """Have the topic know of rules that the catalog has; on_done with result, or what is not told yet."""
        entity = self._namespace.find(subscription, SubscriptionDescription)
        if entity is None:
            on_done(result)  # it was deleted meanwhile
            return

        logs = SubscriptionLogs(entity, self._namespace)
        self._tell(entity, commands(logs), f"The rules of {_named(entity)} are stored", result, on_done)

    def describe(self, change: NamespaceChange, on_done: OnNamespace) -> None:
        """Change what the namespace is, and which throughput units it holds."""
        before = self._namespace.description

        def described(result: NamespaceDescription | ServiceError) -> None:
            if not isinstance(result, ServiceError):
                self._lines.described(before, result)
            on_done(result)

        self._writer.describe(change, described)

    def change_tags(self, location: str | None, tags: Tags | None, on_done: OnNamespace) -> None:
        """Give the namespace a location where it has none, or other tags in the place of all that it has."""

        def changed(known: NamespaceDescription) -> NamespaceDescription:
            where = known.location or location or ""
            return replace_fields(known, location=where, tags=known.tags if tags is None else tags)

        self.describe(changed, on_done)

    def record_usage(self, hours: Sequence[tuple[int, ...]], oldest_hour_ms: int, on_done: OnNamespace) -> None:
        """Record what the namespace used; see CatalogWriter."""
        self._writer.record_usage(hours, oldest_hour_ms, on_done)

    # Steps

    def _open(self, entity: Entity[K], on_done: OnDescription[K]) -> None:
        commands = logs_of(entity, self._namespace).open(self._namespace.description.name)
        self._submit_all(commands, lambda refusals: on_done(_outcome(refusals, entity.description)))

    def _then_finish(
        self, on_done: OnDescription[K], on_refused: Callable[[ServiceError], None]
    ) -> Callable[[Entity[K] | ServiceError], None]:
        """Carry an entity on to its end once the intent is written."""

        def intended(result: Entity[K] | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_refused(result)
            else:
                self._finish(result, on_done)

        return intended

    def _when_at_rest(self, name: str, callback: Callable[[], None]) -> None:
        """Call back when no step of an entity of that name is under way; at once where none is."""
        named = (each for each in self._namespace.unfinished() if fold(each.name) == fold(name))
        entity = next(named, None)
        if entity is None:
            callback()
            return

        def begin(ended: Callable[[], None]) -> None:
            callback()
            ended()

        self._turns.submit(entity.entity_id, begin)

    def _finish(self, entity: Entity[K], on_done: OnDescription[K]) -> None:
        """Carry an entity that is half made or half removed on to its end, when nothing else is done with it."""

        def begin(ended: Callable[[], None]) -> None:
            def done(result: K | ServiceError) -> None:
                if self._half_done(entity) is not None:
                    self._try_again()
                elif not self._namespace.unfinished():
                    self._retry_ms = FIRST_RETRY_MS
                on_done(result)
                ended()

            now = self._half_done(entity)
            if now is None:
                done(entity.description)  # what was before this in the turn did it
            elif now.status is EntityStatus.DELETING:
                self._remove_logs(now, done)
            elif entity.entity_id in self._taken_back:
                self._take_back(now, _later(f"{entity.description.title} cannot be made"), done)
            else:
                self._make_logs(now, done)

        self._turns.submit(entity.entity_id, begin)

    def _make_logs(self, entity: Entity[K], on_done: OnDescription[K]) -> None:
        def committed(result: Entity[K] | ServiceError) -> None:
            now = self._half_done(entity)
            if isinstance(result, ServiceError) and (now is None or now.status is EntityStatus.DELETING):
                on_done(result)  # somebody deleted it meanwhile, or what it belongs inside
            elif isinstance(result, ServiceError):
                logger.error("%s is made and cannot be served: %s", entity.description.title, result.text)
                on_done(_later(f"{entity.description.title} is not served yet: the catalog cannot be written now"))
            else:
                self._lines.created(result.description)
                on_done(result.description)

        def made(refusals: list[Refusal]) -> None:
            if refusals:
                # Take it back, so that the name is free again; a crash in between is carried on as a deletion.
                self._taken_back.add(entity.entity_id)
                self._take_back(entity, refusals[0].error, on_done)
            else:
                self._writer.commit_create(entity, committed)

        self._submit_all(logs_of(entity, self._namespace).make(self._namespace.description.name), made)

    def _take_back(self, entity: Entity[K], refusal: ServiceError, on_done: OnDescription[K]) -> None:
        """Remove an entity that could not be made; on_done with the refusal."""

        def removed(result: K | ServiceError) -> None:
            if isinstance(result, ServiceError):
                logger.error("%s cannot be taken back: %s", entity.description.title, result.text)
                on_done(_later(f"{refusal.text}. What is made of {_named(entity)} is not removed yet", refusal))
            else:
                on_done(refusal)

        def intended(result: Entity[K] | ServiceError) -> None:
            if isinstance(result, ServiceError):
                removed(result)
            else:
                self._remove_logs(result, removed)

        self._writer.take_back(entity, intended)

    def _tell_settings(self, entity: Entity[K], on_done: OnDescription[K]) -> None:
        """Have the brokers do what the catalog says of an entity."""

        def told(result: K | ServiceError) -> None:
            if not isinstance(result, ServiceError):
                self._not_told.discard(entity.entity_id)
            on_done(result)

        commands, stored = logs_of(entity, self._namespace).change(), f"The settings of {_named(entity)} are stored"
        self._tell(entity, commands, stored, entity.description, told)

    def _tell(
        self,
        entity: AnyEntity,
        commands: LogCommands,
        stored: str,
        result: T,
        on_done: Callable[[T | ServiceError], None],
    ) -> None:
        """Have the brokers run commands; on_done with result, or with why not: then the entity is told again later.

        stored: what the catalog has all the same.
        """

        def told(refusals: list[Refusal]) -> None:
            if not refusals:
                on_done(result)
                return
            refusal = refusals[0].error
            self._not_told.add(entity.entity_id)
            self._try_again()
            on_done(_later(f"{refusal.text}. {stored}", refusal))

        self._submit_all(commands, told)

    # What could not be done is done later

    def _half_done(self, entity: Entity[K]) -> Entity[K] | None:
        """The entity as it is now, when it is half made or half removed."""
        found = (each for each in self._namespace.unfinished() if each.entity_id == entity.entity_id)
        return of_kind(next(found, None), type(entity.description))

    def _try_again(self) -> None:
        if self._retry is None and not self._stopped:
            self._retry = self._env.call_later(self._retry_ms, self._carry_on)
            self._retry_ms = min(2 * self._retry_ms, LAST_RETRY_MS)

    def _carry_on(self) -> None:
        self._retry = None
        unfinished = self._namespace.unfinished()
        self._taken_back &= {entity.entity_id for entity in unfinished}
        untold = [
            entity for entity in self._namespace.entities(EntityDescription) if entity.entity_id in self._not_told
        ]
        self._not_told = {entity.entity_id for entity in untold}
        for entity in unfinished:
            if not self._turns.is_busy(entity.entity_id):
                self._finish(entity, _log_carried_on)
        for entity in untold:
            self._tell_settings(entity, _log_carried_on)

    def _remove_logs(self, entity: Entity[K], on_done: OnDescription[K]) -> None:
        text = f"{entity.description.title} is not served any more, and not all of it is removed yet"

        def committed(result: Entity[K] | ServiceError) -> None:
            if isinstance(result, ServiceError):
                logger.error("%s is removed and still in the catalog: %s", entity.description.title, result.text)
                on_done(_later(text))
            else:
                self._lines.deleted(result.description)
                on_done(result.description)

        def removed(refusals: list[Refusal]) -> None:
            if refusals:
                logger.error("%s cannot be removed now: %s", entity.description.title, refusals[0].text)
                on_done(_later(text, refusals[0].error))
            else:
                self.on_removed(entity)
                self._writer.commit_delete(entity, committed)

        self._submit_all(logs_of(entity, self._namespace).remove(), removed)

    def _submit_all(self, commands: LogCommands, on_done: OnRefusals) -> None:
        """Give each command to the broker of its placement; on_done with the refusals when all have answered."""
        left = len(commands)
        refusals: list[Refusal] = []

        def answered(answer: Answer) -> None:
            nonlocal left
            left -= 1
            if isinstance(answer, Refusal):
                refusals.append(answer)
            if not left:
                on_done(refusals)

        if not commands:
            on_done(refusals)
        for placement, command in commands:
            self._brokers.of_store(placement.store_index).submit(command, answered)


def _nobody_holds(entity: AnyEntity) -> None:
    """Nobody has anything of its logs."""


def _named(entity: AnyEntity) -> str:
    """How texts name an entity in the middle of a sentence."""
    return f"{entity.kind.noun} '{entity.name}'"


def _later(text: str, refusal: ServiceError | None = None) -> ServiceError:
    """The answer when something is half done. refusal: why; its condition stays."""
    condition = STORE_OFFLINE if refusal is None else refusal.condition
    return ServiceError(condition, f"{text}: the service goes on with it by itself. Look first, then try again.")


def _log_carried_on(result: EntityDescription | ServiceError) -> None:
    if isinstance(result, ServiceError):
        logger.warning("not done yet: %s", result.text)
    else:
        logger.info("done now: what was left of a change of %s", result.title)


def _outcome(refusals: list[Refusal], description: K) -> K | ServiceError:
    return refusals[0].error if refusals else description

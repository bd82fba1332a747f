"""The keeper of the catalogs for other processes: what follows them is told of each change, and asks for changes.

It stands behind streams as a broker does (broker/server.py), and is given their commands; what it pushes has the
process in its owner. Each namespace has a gateway here without listeners, whose CatalogKeeper alone changes the
catalog. The end of a process's stream comes as CloseOwner: changes wait for it to come back, or until it is dead
(namespace/catalog_followers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar
from weakref import WeakKeyDictionary

from hubweir.broker.commands.command import Answer, Command, KeeperCommand, OnAnswer, Push
from hubweir.broker.commands.keeper import (
    PART_BYTES,
    AskUsage,
    CatalogApplied,
    CatalogChanged,
    CatalogFollowed,
    CatalogPart,
    CreateEntity,
    DeleteEntity,
    EntityAsKept,
    FollowCatalog,
    LeaseUnits,
    PutCatalogRule,
    RemoveCatalogRule,
    RuleAsKept,
    TellUses,
    UnitsLent,
    UpdateAuthorizationRules,
    UpdateEntity,
    UpdateTags,
    UpdateUnits,
    UsageTold,
    UsesWanted,
)
from hubweir.broker.commands.process import CloseOwner, Done
from hubweir.broker.refusals import refusal_of
from hubweir.errors import NOT_ALLOWED, NOT_FOUND, HubweirError, ServiceError
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.namespace.change_forms import (
    decode_change,
    decode_description,
    decode_subscription_rule,
    encode_description,
    encode_subscription_rule,
    kind_of,
)
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.subscription_rule import KeptPart, WantedRule

T = TypeVar("T")


class KeptGateways(Protocol):
    """The gateways of the keeper's process, one a namespace."""

    gateways: list[Gateway]


class KeeperServer:
    """See the module's text. on_push: what takes pushes to the streams of their owners' processes.

    on_dead: called with the id of a process that did not apply a change in time; its stream is to be ended.
    """

    def __init__(self, process: KeptGateways) -> None:
        self._process = process
        self.on_push: Callable[[Push], None] | None = None
        self.on_dead: Callable[[int], None] | None = None
        # By process.
        self._connections: WeakKeyDictionary[Gateway, dict[int, int]] = WeakKeyDictionary()

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Run a command of a process; on_answer is called exactly once."""
        try:
            if isinstance(command, CloseOwner):
                self._left(command.owner.process)
                on_answer(Done())
                return
            handler = self._handlers.get(type(command))
            if handler is None or not isinstance(command, KeeperCommand):
                raise ServiceError(NOT_ALLOWED, f"the keeper of the catalogs takes no {type(command).__name__}")
            handler(self, self._gateway(command.namespace), command, on_answer)
        except (HubweirError, OSError) as error:
            on_answer(refusal_of(error))

    def gone(self, process: int) -> None:
        """The process ended: no change waits for it."""
        self._left(process)
        for gateway in self._process.gateways:
            self._keeper(gateway).followers.gone(process)

    def expect(self, processes: Iterable[int]) -> None:
        """These processes live, and are about to follow: changes wait for them, as for those that follow."""
        known = tuple(processes)
        for gateway in self._process.gateways:
            self._keeper(gateway).followers.expect(known)

    def dead(self, process: int) -> None:
        """A process did not apply a change in time."""
        if self.on_dead is not None:
            self.on_dead(process)

    # Who follows

    def _left(self, process: int) -> None:
        for gateway in self._process.gateways:
            self._keeper(gateway).followers.left(process)
            self._lost(gateway, process)

    def _lost(self, gateway: Gateway, process: int) -> None:
        """Nothing of what a process said of itself counts any more."""
        gateway.uses_everywhere.left(process)
        self._units(gateway).process_left(process)
        self._connections.get(gateway, {}).pop(process, None)

    def _follow(self, gateway: Gateway, command: FollowCatalog, on_answer: OnAnswer) -> None:
        owner, namespace, keeper = command.owner, command.namespace, self._keeper(gateway)
        version, snapshot = keeper.snapshot()
        for at in range(0, len(snapshot), PART_BYTES):
            self.push(CatalogPart(owner, namespace, snapshot[at : at + PART_BYTES]))
        on_answer(CatalogFollowed(version, len(snapshot)))

        def tell(made: int, operation: bytes) -> None:
            self.push(CatalogChanged(owner, namespace, made, operation))

        def dead() -> None:
            self._lost(gateway, owner.process)
            self.dead(owner.process)

        keeper.followers.came(owner.process, version, tell, dead)

        def ask(question: int, log_id: str) -> None:
            self.push(UsesWanted(owner, namespace, question, log_id))

        gateway.uses_everywhere.came(owner.process, ask)

    def _applied(self, gateway: Gateway, command: CatalogApplied, on_answer: OnAnswer) -> None:
        on_answer(Done())
        self._keeper(gateway).followers.applied(command.owner.process, command.version)

    # What is asked for

    def _create(self, gateway: Gateway, command: CreateEntity, on_answer: OnAnswer) -> None:
        self._keeper(gateway).create(decode_description(command.description), _then(on_answer, _as_kept))

    def _update(self, gateway: Gateway, command: UpdateEntity, on_answer: OnAnswer) -> None:
        change, kind = decode_change(command.change), kind_of(command.kind)
        self._keeper(gateway).change(command.name, kind, change, _then(on_answer, _as_kept))

    def _delete(self, gateway: Gateway, command: DeleteEntity, on_answer: OnAnswer) -> None:
        self._keeper(gateway).delete(command.name, kind_of(command.kind), _then(on_answer, _as_kept))

    def _update_rules(self, gateway: Gateway, command: UpdateAuthorizationRules, on_answer: OnAnswer) -> None:
        self._keeper(gateway).change_rules(command.entity, decode_change(command.change), _then(on_answer, _done))

    def _put_rule(self, gateway: Gateway, command: PutCatalogRule, on_answer: OnAnswer) -> None:
        keeps = None if command.keeps is None else KeptPart(command.keeps)
        self._keeper(gateway).put_subscription_rule(
            command.subscription,
            WantedRule(decode_subscription_rule(command.rule), keeps),
            _then(on_answer, lambda kept: RuleAsKept(encode_subscription_rule(kept))),
        )

    def _remove_rule(self, gateway: Gateway, command: RemoveCatalogRule, on_answer: OnAnswer) -> None:
        self._keeper(gateway).remove_subscription_rule(command.subscription, command.name, _then(on_answer, _done))

    def _update_tags(self, gateway: Gateway, command: UpdateTags, on_answer: OnAnswer) -> None:
        self._keeper(gateway).change_tags(command.location, command.tags, _then(on_answer, _done))

    def _update_units(self, gateway: Gateway, command: UpdateUnits, on_answer: OnAnswer) -> None:
        gateway.units.change(_then(on_answer, _done), held=command.held, maximum=command.maximum)

    def _lease(self, gateway: Gateway, command: LeaseUnits, on_answer: OnAnswer) -> None:
        process, connections = command.owner.process, self._connections.setdefault(gateway, {})
        connections[process] = command.connections
        others = sum(count for other, count in connections.items() if other != process)
        asked = command.asked_in, command.asked_out
        lent_in, lent_out = self._units(gateway).lend(process, asked, command.moved)
        on_answer(UnitsLent(lent_in, lent_out, others))

    def _ask_usage(self, gateway: Gateway, command: AskUsage, on_answer: OnAnswer) -> None:
        gateway.units.ask_usage(_then(on_answer, lambda hours: UsageTold(tuple(hours))))

    def _uses_told(self, gateway: Gateway, command: TellUses, on_answer: OnAnswer) -> None:
        on_answer(Done())
        gateway.uses_everywhere.told(command.owner.process, command.question, command.unused_ms)

    # Inside

    def _gateway(self, namespace: str) -> Gateway:
        for gateway in self._process.gateways:
            if gateway.settings.namespace == namespace:
                return gateway
        raise ServiceError(NOT_FOUND, f"no namespace '{namespace[:128]}' is kept here, or not yet")

    def _keeper(self, gateway: Gateway) -> CatalogKeeper:
        assert isinstance(gateway.keeper, CatalogKeeper), "a process that follows keeps nothing"
        return gateway.keeper

    def _units(self, gateway: Gateway) -> NamespaceUnits:
        assert isinstance(gateway.units, NamespaceUnits), "a process that follows lends nothing"
        return gateway.units

    def push(self, push: Push) -> None:
        """Give a push to its owner's process."""
        if self.on_push is not None:
            self.on_push(push)

    _handlers: ClassVar[Mapping[type[Command], Callable[[Any, Gateway, Any, OnAnswer], None]]] = {
        FollowCatalog: _follow,
        CatalogApplied: _applied,
        CreateEntity: _create,
        UpdateEntity: _update,
        DeleteEntity: _delete,
        UpdateAuthorizationRules: _update_rules,
        PutCatalogRule: _put_rule,
        RemoveCatalogRule: _remove_rule,
        UpdateTags: _update_tags,
        UpdateUnits: _update_units,
        AskUsage: _ask_usage,
        LeaseUnits: _lease,
        TellUses: _uses_told,
    }


def _then(on_answer: OnAnswer, form: Callable[[T], Answer]) -> Callable[[T | ServiceError], None]:
    """What answers a command when a change holds, or is refused. A refusal says itself what is known."""
    return lambda result: on_answer(refusal_of(result) if isinstance(result, ServiceError) else form(result))


def _as_kept(description: EntityDescription) -> EntityAsKept:
    return EntityAsKept(encode_description(description))


def _done(_: object) -> Done:
    return Done()

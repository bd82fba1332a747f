"""The namespaces of a process that follows a keeper: a gateway for each, as long as the keeper says that it is served.

The list comes over the stream of the catalogs. A namespace that came has its gateway when its catalog is known; one
that went has its connections ended. When all of that is done for a list, the keeper is told, who waits for it. While
the keeper is away the namespaces stay as they are, and none can be made or deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.broker.commands.command import Answer, Command, nobody_waits
from hubweir.broker.commands.keeper import (
    AskRestore,
    CreateNamespace,
    DeleteNamespace,
    FollowNamespaces,
    NamespacesApplied,
    NamespacesTold,
    RestoreNamespace,
    RestoreTold,
)
from hubweir.broker.commands.process import Done, Refusal
from hubweir.config.namespaces_at_start import NamespaceSettings, hosts_of
from hubweir.config.settings import Settings
from hubweir.drivers.tasks import Tasks
from hubweir.errors import STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.keeper.client import KeeperClient
from hubweir.gateway.keeper.followed_namespace import AWAY, UNKNOWN, FollowedNamespace
from hubweir.gateway.namespace_management import NewNamespace, RestoreState
from hubweir.namespace.tiers import PROFILES
from hubweir.service.completions import answer
from hubweir.service.part_settings import gateway_settings
from hubweir.service.told_namespaces import decode_namespaces, told

Namespaces = tuple[NamespaceSettings, ...]


class FollowedNamespaces:
    """See the module's text. prepare: waited for with the namespaces: takes a certificate for their names. on_change:
    called with them when they are others. on_whole: called when each of them has a gateway. is_serving: whether the
    process takes clients.
    """

    def __init__(
        self,
        settings: Settings,
        process: GatewayProcess,
        keeper: KeeperClient,
        issuer: IssuerKeys | None,
        *,
        prepare: Callable[[Namespaces], Awaitable[None]],
        on_change: Callable[[Namespaces], None],
        on_whole: Callable[[], None],
        is_serving: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._process = process
        self._keeper = keeper
        self._issuer = issuer
        self._prepare = prepare
        self._on_change = on_change
        self._on_whole = on_whole
        self._is_serving = is_serving
        self._namespaces: Namespaces = ()
        self._version: int | None = None  # of the list, as the keeper told it last
        self._changes = 0  # how many lists came
        self._is_named = True  # `prepare` is over for the newest list
        self._is_told = False  # the list, over the stream that stands
        self._news = asyncio.Event()
        self._tasks = Tasks("the list of namespaces")
        keeper.on_namespaces = self._told
        keeper.on_following = self._news.set

    @property
    def is_current(self) -> bool:
        """Whether all is here as the keeper has it: the list, and the catalog of each namespace."""
        process = self._process
        return self._is_told and process.has_all and all(each.keeper.is_current for each in process.gateways)

    async def current(self) -> None:
        """Returns when it is."""
        while not self.is_current:
            self._news.clear()
            await self._news.wait()

    async def stop(self) -> None:
        """Follow nothing more."""
        await self._tasks.stop()

    def begin(self, namespaces: Namespaces) -> None:
        """Serve what the process was started with; the keeper says later what else there is."""
        self._serve(tuple(map(told, namespaces)))

    def came(self) -> None:
        """The stream stands, for the first time or again."""

        def answered(said: Answer) -> None:
            if isinstance(said, NamespacesTold):
                self._told(said.version, said.namespaces)

        self._keeper.submit(FollowNamespaces(self._keeper.owner, ""), answered)

    def went(self) -> None:
        """The stream ended."""
        self._is_told = False

    # What may be asked for (gateway/namespace_management.py)

    async def create(self, wanted: NewNamespace) -> None:
        command = CreateNamespace(
            self._keeper.owner,
            wanted.name,
            wanted.hostnames,
            wanted.profile,
            wanted.key.reveal(),
            wanted.throughput_units,
            wanted.maximum_throughput_units,
        )
        await self._ask(command)

    async def delete(self, name: str) -> None:
        await self._ask(DeleteNamespace(self._keeper.owner, name))

    async def restore(self, name: str, source: str) -> None:
        await self._ask(RestoreNamespace(self._keeper.owner, name, source))

    async def restore_state(self, name: str) -> RestoreState:
        told = await self._ask(AskRestore(self._keeper.owner, name))
        assert isinstance(told, RestoreTold), "the answer of that command"
        return RestoreState(told.copied_bytes, told.size_bytes, told.is_over, told.problem)

    # Inside

    async def _ask(self, command: Command) -> Answer:
        if not self._keeper.is_up:
            raise ServiceError(STORE_OFFLINE, AWAY)
        said: Answer = await answer(partial(self._keeper.change, command))
        if isinstance(said, Refusal) and not said.known:  # the stream ended, or the keeper stalls
            raise ServiceError(TIMED_OUT, UNKNOWN)
        if not isinstance(said, Done | RestoreTold):
            raise error_of(said)
        return said

    def _told(self, version: int, namespaces: bytes) -> None:
        """The keeper says which namespaces there are."""
        self._version = version
        self._is_told = True
        self._changes += 1
        self._is_named = False
        served = decode_namespaces(namespaces)
        self._serve(served)
        self._on_change(served)
        self._tasks.start(self._named(self._changes, served), name="names")

    async def _named(self, change: int, namespaces: Namespaces) -> None:
        await self._prepare(namespaces)
        if change == self._changes:
            self._is_named = True
            self._look()

    def _serve(self, namespaces: Namespaces) -> None:
        """Have a gateway for each of these, and for no other."""
        before = {each.name: each for each in self._namespaces}
        self._namespaces = namespaces
        hosts = hosts_of(self._settings, namespaces)
        for name, old in before.items():
            if next((each for each in namespaces if each.name == name), None) != old:
                self._drop(name)
        self._process.lead(hosts)
        for each in namespaces:
            if before.get(each.name) != each:
                profile = PROFILES[each.profile]
                self._keeper.follow(each.name, profile=profile, host=each.name, on_first=partial(self._known, each))
        self._look()

    def _known(self, wanted: NamespaceSettings, followed: FollowedNamespace) -> None:
        """The catalog of a namespace is here."""
        hosts = hosts_of(self._settings, self._namespaces)[wanted.name]
        gateway = Gateway(self._process, followed, gateway_settings(self._settings, wanted, hosts, self._issuer))
        if self._is_serving():
            gateway.forwarder.start()  # those that were there before begin with the process
        order = [each.name for each in self._namespaces]  # the first is the default
        self._process.gateways.sort(key=lambda each: order.index(each.settings.namespace))
        self._look()

    def _drop(self, name: str) -> None:
        self._keeper.unfollow(name)
        gateway = next((each for each in self._process.gateways if each.settings.namespace == name), None)
        if gateway is not None:
            self._process.remove_gateway(gateway)

    def _look(self) -> None:
        """Whether all of the newest list is done; then whoever waits for it is told."""
        self._process.has_all = len(self._process.gateways) == len(self._namespaces)
        if not self._process.has_all:
            return
        self._news.set()
        self._on_whole()
        if self._version is not None and self._is_named:
            version, self._version = self._version, None
            # A keeper that does not hear it takes this process for dead, and is followed anew.
            self._keeper.submit(NamespacesApplied(self._keeper.owner, "", version), nobody_waits)

"""followed_namespaces.py: when a process has all as the keeper has it. The keeper of the catalogs is a real one, in
virtual time; its list of namespaces comes when the test says so.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from hubweir.broker.commands.command import Command, OnAnswer
from hubweir.broker.commands.keeper import FollowNamespaces, NamespacesTold
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import Settings
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.keeper.client import KeeperClient
from hubweir.gateway.keeper.tests.keeper_world import NAMESPACE, KeeperWorld, Stream
from hubweir.service.followed_namespaces import FollowedNamespaces, Namespaces
from hubweir.service.told_namespaces import encode_namespaces
from hubweir.testing.event_loops import run_on

PROCESS = 101


class Way(Stream):
    """To the keeper. lists: who waits for the list of namespaces."""

    def __init__(self, world: KeeperWorld) -> None:
        super().__init__(world, PROCESS)
        self.lists: list[OnAnswer] = []

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        if isinstance(command, FollowNamespaces):
            self.lists.append(on_answer)
        else:
            super().submit(command, on_answer)


class Bench:
    """A process that follows. It has begun with the one namespace that there is."""

    def __init__(self) -> None:
        self.world = KeeperWorld()
        self.way = Way(self.world)
        self.world.followers[PROCESS] = SimpleNamespace(stream=self.way)
        self.process = GatewayProcess(
            self.world.env, Brokers([self.world.shared_gate]), limits=self.world.limits, process_id=PROCESS
        )
        self.process.has_all = False
        self.client = KeeperClient(self.world.env, self.way, PROCESS)
        self.followed = FollowedNamespaces(
            Settings(),
            self.process,
            self.client,
            None,
            prepare=self._prepare,
            on_change=lambda namespaces: None,
            on_whole=lambda: None,
            is_serving=lambda: False,
        )
        self.followed.begin((NamespaceSettings(name=NAMESPACE, key="k"),))

    async def _prepare(self, namespaces: Namespaces) -> None:
        """Their certificate is none of what is waited for."""

    def came(self, *, is_held: bool = False) -> None:
        """is_held: nothing comes over the stream yet."""
        self.way.is_up, self.way.is_held = True, is_held
        self.client.came()
        self.followed.came()
        self.world.run_for(20)

    def went(self) -> None:
        self.way.end()
        self.client.went()
        self.followed.went()

    def tell(self, *names: str) -> None:
        """The keeper says that there are these namespaces."""
        told = encode_namespaces([NamespaceSettings(name=each, key="k") for each in names])
        self.way.lists.pop()(NamespacesTold(1, told))


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_it_is_current_when_it_has_the_list_and_every_catalog_whichever_comes_first() -> None:
    async def scenario() -> None:
        bench = Bench()
        current = asyncio.ensure_future(bench.followed.current())
        bench.came()
        await turns()
        assert bench.process.has_all and not bench.followed.is_current and not current.done()
        bench.tell(NAMESPACE)
        assert bench.followed.is_current
        await current
        bench.went()
        assert not bench.followed.is_current
        again = asyncio.ensure_future(bench.followed.current())
        bench.came(is_held=True)
        bench.tell(NAMESPACE)
        await turns()
        assert not bench.followed.is_current and not again.done()
        bench.way.release()
        bench.world.run_for(20)
        assert bench.followed.is_current
        await again
        await bench.followed.stop()

    run_on("asyncio", scenario())


def test_a_list_that_was_told_over_an_earlier_stream_counts_not() -> None:
    """Namespaces may have come while there was no keeper."""

    async def scenario() -> None:
        bench = Bench()
        bench.came()
        bench.tell(NAMESPACE)
        bench.went()
        bench.came()
        assert all(each.keeper.is_current for each in bench.process.gateways)
        assert not bench.followed.is_current
        bench.tell(NAMESPACE, "another")
        assert not bench.followed.is_current, "the catalog of the other one is not here"
        await bench.followed.stop()

    run_on("asyncio", scenario())


def test_who_waits_hears_of_a_catalog_that_comes_last() -> None:
    """It may come again by itself, where an operation did not fit the copy."""

    async def scenario() -> None:
        bench = Bench()
        bench.came()
        bench.tell(NAMESPACE)
        await bench.followed.current()
        bench.way.is_held = True
        bench.client.came()
        current = asyncio.ensure_future(bench.followed.current())
        await turns()
        assert not current.done()
        bench.way.release()
        bench.world.run_for(20)
        await current
        await bench.followed.stop()

    run_on("asyncio", scenario())

"""Catalogs and namespaces at a start: each finds its own, none is left out; a crash leaves none that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest

from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.namespaces_at_start import namespaces_at_start
from hubweir.config.settings import Settings
from hubweir.errors import CatalogLost, ServiceError
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.completions import answer
from hubweir.service.data_folder import StoredLog
from hubweir.service.stored_namespaces import StoredNamespaces
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")


class Folder:
    """A catalogs' store on a disk in memory, opened anew for each start."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(3)

    def start(self, *names: str, crash_after: int | None = None) -> list[tuple[str, str]]:
        """A start that says these names, the default one first: of each namespace its name, and its name before.

        crash_after: so many catalogs have got their names when the power is cut.
        """
        store = MessagingStore.open(self.env, "catalog")
        found = self.read(store)
        default = {"namespace": names[0]} if names else {}
        said = said_namespaces(
            Settings(**default, further_namespace=names[1:]),
            sources=dict.fromkeys((*default, "further_namespace"), "the test"),
        )
        served = namespaces_at_start(said, found.descriptions).namespaces
        before = []
        for count, each in enumerate(served):
            writer = self.play(found.open(each))
            before.append((each.name, writer.namespace.description.name))
            if count != crash_after:
                say = partial(replace, name=each.name, default_rank=each.default_rank)
                writer.describe(say, lambda _: None)
                self.env.run_for(1_000)
            else:
                self.env.crash(power_cut=True)
                self.env = self.env.restart()
                return before
        self._close(store)
        return before

    def read(self, store: MessagingStore, *logs: StoredLog) -> StoredNamespaces:
        return self.play(StoredNamespaces.read(self.env, store, store.alarms, logs))

    def play(self, step: Coroutine[Any, Any, T]) -> T:
        """Run a step of the service's start in this world."""

        async def played() -> T:
            task = asyncio.ensure_future(step)
            while not task.done():
                self.env.run_for(1)
                await asyncio.sleep(0)
            return task.result()

        return asyncio.run(played())

    @property
    def catalogs(self) -> int:
        store = MessagingStore.open(self.env, "catalog")
        self._close(store)
        return len(store.log_ids())

    def _close(self, store: MessagingStore) -> None:
        over: list[bool] = []
        store.close(lambda: over.append(True))
        self.env.run_for(1_000)
        assert over


def test_every_namespace_finds_its_catalog_by_name_in_whatever_order() -> None:
    folder = Folder()
    assert folder.start("one", "two", "three") == [("one", ""), ("two", ""), ("three", "")]
    assert folder.start("three", "ONE", "two") == [("three", "three"), ("ONE", "one"), ("two", "two")]
    assert folder.catalogs == 3


def test_a_start_that_names_nothing_serves_all_of_them_and_the_same_default_one() -> None:
    folder = Folder()
    folder.start("one", "two", "three")
    folder.start("two")
    for _ in range(2):
        assert folder.start() == [("two", "two"), ("one", "one"), ("three", "three")]


def test_the_only_catalog_is_the_default_namespaces_whatever_its_name() -> None:
    folder = Folder()
    folder.start("hubweir")
    assert folder.start("renamed") == [("renamed", "hubweir")]
    assert folder.start("again", "further") == [("again", "renamed"), ("further", "")]


def test_a_namespace_that_is_added_in_front_takes_nobodys_catalog() -> None:
    folder = Folder()
    folder.start("old")
    assert folder.start("new", "old") == [("new", ""), ("old", "old")]


def test_a_crash_before_the_names_are_written_loses_no_catalog() -> None:
    for named in range(2):
        folder = Folder()
        folder.start("one", "two", crash_after=named)
        folder.start("one", "two")
        assert folder.catalogs == 2
        assert folder.start() == [("one", "one"), ("two", "two")]


def test_a_catalog_that_is_lost_ends_the_start() -> None:
    folder = Folder()
    folder.start("one", "two")
    files = folder.env.files
    lost = files.list("catalog/logs")[0]
    files.remove_folder(f"catalog/logs/{lost}")
    store = MessagingStore.open(folder.env, "catalog")
    with pytest.raises(CatalogLost, match=lost):
        folder.read(store)
    assert lost not in files.list("catalog/logs")


def test_logs_that_no_catalog_names_keep_a_namespace_from_beginning_anew() -> None:
    folder = Folder()
    folder.start("one")
    store = MessagingStore.open(folder.env, "catalog")
    found = folder.read(store, StoredLog("store-0", "ab" * 16))
    assert found.unnamed == ("ab" * 16,)
    said = said_namespaces(Settings(further_namespace=("two",)), sources={"further_namespace": "the test"})
    one, two = namespaces_at_start(said, found.descriptions).namespaces
    assert folder.play(found.open(one)).namespace.description.name == "one"
    with pytest.raises(CatalogLost, match="namespace two has no catalog"):
        folder.play(found.open(two))
    assert len(store.log_ids()) == 1


def test_files_of_a_log_in_a_store_that_the_catalog_does_not_name_for_it_are_told() -> None:
    """An interrupted move left them: they are no log that has lost its catalog."""
    folder = Folder()
    folder.start("one")
    store = MessagingStore.open(folder.env, "catalog")
    found = folder.read(store)
    served = namespaces_at_start(said_namespaces(Settings(), sources={}), found.descriptions).namespaces
    writer = folder.play(found.open(served[0]))
    hub = folder.play(answer(partial(writer.begin_create, EventHubDescription("orders", 1), (1,))))
    assert not isinstance(hub, ServiceError)
    (placed,) = hub.placements
    folder._close(store)
    there = [StoredLog(name, placed.log_id) for name in ("store-0", "store-1")]
    for logs, alarms in ((there[1:], 0), (there, 1)):
        store = MessagingStore.open(folder.env, "catalog")
        found = folder.read(store, *logs)
        assert found.unnamed == () and found.stores == {1}
        told = [str(alarm) for alarm in store.alarms.current()]
        assert len(told) == alarms
        folder._close(store)
    assert told[0].startswith(f"store store-0: log {placed.log_id} is served from store-1")
    assert f"hubweir store move {placed.log_id} --to store-1" in told[0]

"""Whose catalog is whose at a start: by name; the only one is the default's; a crash leaves none that is lost."""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.config.namespace_settings import NamespaceSettings, namespaces_of
from hubweir.config.settings import Settings
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.namespace import Namespace
from hubweir.served_namespaces import gateway_settings, open_namespaces
from hubweir.testing.simulated_env import SimulatedEnv


def wanted(*names: str) -> list[NamespaceSettings]:
    return [NamespaceSettings(name=name, key="k") for name in names]


class Folder:
    """A catalogs' store on a disk in memory, opened anew for each start."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(3)

    def start(self, *names: str, crash_before_names: bool = False) -> tuple[list[str], tuple[str, ...]]:
        """A start with these namespaces: what each catalog was called before it got its name, and who was left."""
        store = MessagingStore.open(self.env, "catalog")
        opened = open_namespaces(self.env, store, wanted(*names))
        before = [namespace.description.name for namespace in opened.namespaces]
        if not crash_before_names:
            self._name(opened.namespaces, names)
        over: list[bool] = []
        store.close(lambda: over.append(True))
        self.env.run_for(1_000)
        assert over
        return before, opened.left

    def _name(self, namespaces: Sequence[Namespace], names: Sequence[str]) -> None:
        for namespace, name in zip(namespaces, names, strict=True):
            if namespace.description.name != name:
                namespace.name_namespace(name, lambda _: None)
        self.env.run_for(1_000)


def test_every_namespace_finds_its_catalog_by_name_in_whatever_order() -> None:
    folder = Folder()
    assert folder.start("one", "two", "three") == (["", "", ""], ())
    assert folder.start("three", "ONE", "two") == (["three", "one", "two"], ())


def test_the_only_catalog_is_the_default_namespaces_whatever_its_name() -> None:
    folder = Folder()
    folder.start("hubweir")
    assert folder.start("renamed") == (["hubweir"], ())
    assert folder.start("again", "further") == (["renamed", ""], ())


def test_a_namespace_that_is_added_in_front_takes_nobodys_catalog() -> None:
    folder = Folder()
    folder.start("old")
    assert folder.start("new", "old") == (["", "old"], ())


def test_catalogs_that_nobody_wants_are_left_and_found_again() -> None:
    folder = Folder()
    folder.start("one", "two", "three")
    assert folder.start("two") == (["two"], ("one", "three"))
    assert folder.start("fresh", "three") == (["", "three"], ("one", "two"))
    assert folder.start("one", "two") == (["one", "two"], ("fresh", "three"))


def test_a_crash_before_the_names_are_written_loses_no_catalog() -> None:
    folder = Folder()
    folder.start("one", "two", crash_before_names=True)
    store = MessagingStore.open(folder.env, "catalog")
    count = len(store.log_ids())
    store.close(lambda: None)
    folder.env.run_for(1_000)
    assert folder.start("one", "two") == (["", ""], ())
    store = MessagingStore.open(folder.env, "catalog")
    assert len(store.log_ids()) == count == 2


def test_each_gateway_has_the_quotas_and_the_host_of_its_namespace() -> None:
    settings = Settings(hostname=("plain.example",), further_namespace=("large=large.example",), profile="basic")
    default, large = namespaces_of(settings)
    hosts = HostNames(frozenset())
    values = gateway_settings(settings, default, hosts, None, "")
    assert (values.namespace, values.host_name, values.max_message_size_bytes) == ("hubweir", "plain.example", 262_144)
    values = gateway_settings(settings, large, hosts, None, "films")
    assert (values.namespace, values.host_name, values.connections_max) == ("large", "large.example", 100)

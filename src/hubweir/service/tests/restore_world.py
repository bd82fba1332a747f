"""Data folders on disks in memory: one with a namespace of its own, and a backup of another that may come into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from hubweir.alarms import AlarmKind
from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import events, messages_of
from hubweir.namespace.catalog_log import load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.backup import BackedUp
from hubweir.service.data_folder import CATALOG_FOLDER, StoredLog, store_count, store_folder
from hubweir.service.namespace_restore import NamespaceRestore
from hubweir.testing.answers import answered, made_log, opened_log, runs_of
from hubweir.testing.memory_faults import Ended, Fault, Plan
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")
# By namespace, then by event hub: the bodies of its events.
Served = dict[str, dict[str, list[bytes]]]


class MemoryFolder:
    """A data folder, its service stopped. env: of the process that works on it now."""

    def __init__(self, seed: int = 3) -> None:
        self.env = SimulatedEnv(seed)
        self._end: Plan | None = None  # of the process

    def end_process(self, *, power_cut: bool = False) -> None:
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def wait_for(self, start: Callable[[Callable[[T], None]], object]) -> T:
        if self._end is not None and self._end.fired:
            raise Ended  # a process that has ended waits for nothing
        return answered(self.env, start)

    def ends(self, fault: Fault, nth: int, work: Callable[[], object]) -> bool:
        """The process ends before the nth file call of some work; False when that is through before."""
        plan = self._end = self.env.files.plan(fault, nth, forever=True)
        with suppress(Ended):
            work()
        self.env.files.heal()
        self._end = None
        if plan.fired:
            self.end_process(power_cut=fault is Fault.POWER_CUT)
        return bool(plan.fired)

    def add(
        self,
        name: str,
        hubs: Mapping[str, tuple[int, bytes]],
        *,
        rank: int = 0,
        hostnames: tuple[str, ...] = (),
    ) -> BackedUp:
        """Make a namespace. hubs: by name, the store of its one partition and the body of its one event."""
        with self.store(CATALOG_FOLDER) as catalogs:
            catalog_id = self.env.new_id()
            writer = self._writer(catalogs, catalog_id)
            described = answered(
                self.env,
                partial(
                    writer.describe, lambda known: replace(known, name=name, default_rank=rank, hostnames=hostnames)
                ),
            )
            assert not isinstance(described, ServiceError), described
            logs = []
            for hub, (index, body) in hubs.items():
                entity = answered(self.env, partial(writer.begin_create, EventHubDescription(hub, 1), (index,)))
                assert not isinstance(entity, ServiceError), entity
                log_id = entity.placements[0].log_id
                with self.store(store_folder(index)) as store:
                    log = made_log(self.env, store, log_id)
                    log.append(events([body]), now_ms=self.env.now_ms(), on_done=lambda outcome: None)
                    self.env.run_for(50)
                assert not isinstance(answered(self.env, partial(writer.commit_create, entity)), ServiceError)
                logs.append(StoredLog(store_folder(index), log_id))
        return BackedUp(described, catalog_id, tuple(logs))

    def take_epochs(self, count: int, *folders: str) -> None:
        """Open stores so often, as that many starts of a service do."""
        for folder in folders * count:
            with self.store(folder):
                pass

    def restore(
        self,
        source: MemoryFolder,
        namespace: BackedUp,
        *,
        on_bytes: Callable[[int], None] = lambda count: None,
        copy_captured: Callable[[], None] = lambda: None,
    ) -> None:
        """What the command does."""
        restore = NamespaceRestore(self.env, lambda folder: self.env, self.wait_for, "data", source.env.files)
        restore.restore(namespace, on_bytes, copy_captured)

    def served(self, *, may_tell: Sequence[AlarmKind] = ()) -> Served:
        """What a start serves, the default namespace first. may_tell: alarms of the catalogs that it may tell; of
        anything else it has nothing to tell.
        """
        found: Served = {}
        with self.store(CATALOG_FOLDER) as catalogs:
            writers = [self._writer(catalogs, catalog_id) for catalog_id in catalogs.log_ids()]
            # Of two with one rank nobody knows which is the default one: here that of the later name is told first.
            writers.sort(key=_rank_and_name, reverse=True)
            for writer in writers:
                hubs = writer.namespace.entities(EventHubDescription)
                assert not writer.namespace.unfinished()
                found[writer.namespace.description.name] = {
                    hub.name: self._bodies(store_folder(place.store_index), place.log_id)
                    for hub in hubs
                    for place in hub.placements
                }
            assert {alarm.kind for alarm in catalogs.alarms.current()} <= set(may_tell)
        return found

    def append(self, log: StoredLog, body: bytes) -> None:
        """What a service that goes on does with a log."""
        with self.store(log.store) as store:
            opened = opened_log(self.env, store, log.log_id)
            opened.append(events([body]), now_ms=self.env.now_ms(), on_done=lambda outcome: None)
            self.env.run_for(50)

    def logs(self) -> list[str]:
        """The names that stand where logs are, in all stores."""
        stores = [CATALOG_FOLDER, *(store_folder(index) for index in range(store_count(self.env.files)))]
        return sorted(f"{store}/{name}" for store in stores for name in self.env.files.list(f"{store}/logs"))

    def contents(self) -> dict[str, bytes]:
        """What stands in each file."""
        return {path: bytes(self.env.files.bytes_of(path)) for path in self.env.files.paths()}

    @contextmanager
    def store(self, folder: str) -> Iterator[MessagingStore]:
        """A store, open as a start has it."""
        store = MessagingStore.open(self.env, folder, has_retention=folder != CATALOG_FOLDER)
        store.remove_unfinished()
        yield store
        closed: list[bool] = []
        store.close(lambda: closed.append(True))
        self.env.run_for(2_000)
        assert closed

    def _writer(self, catalogs: MessagingStore, catalog_id: str) -> CatalogWriter:
        log = made_log(self.env, catalogs, catalog_id)
        loaded = answered(self.env, partial(load_catalog, log))
        assert not isinstance(loaded, Refused), loaded
        return CatalogWriter(log, self.env, loaded)

    def _bodies(self, folder: str, log_id: str) -> list[bytes]:
        with self.store(folder) as store:
            log = opened_log(self.env, store, log_id)
            bodies = [body for run in runs_of(self.env, log) for body in messages_of(run.data).values()]
            assert store.alarms.current() == ()
        return bodies


def _rank_and_name(writer: CatalogWriter) -> tuple[int, str]:
    described = writer.namespace.description
    return described.default_rank, described.name


HOME: Served = {"home": {"kitchen": [b"event of home"]}}
TWO: Served = {"two": {"orders": [b"ordered"], "bills": [b"billed"]}}


class RestoreWorld:
    """The folder `home`, and a backup of the namespace `two`, whose stores saw more starts than those of the folder."""

    def __init__(self, *, home_rank: int = 5, two_rank: int = 1) -> None:
        self.home, self.backup = MemoryFolder(3), MemoryFolder(4)
        self.home.add("home", {"kitchen": (0, b"event of home")}, rank=home_rank, hostnames=("home.example",))
        self.backup.take_epochs(6, "catalog", "store-0", "store-1")
        hubs = {"orders": (0, b"ordered"), "bills": (1, b"billed")}
        self.two = self.backup.add("two", hubs, rank=two_rank, hostnames=("two.example",))
        self.home.end_process()

    def restore(self, **told: Callable[..., None]) -> None:
        self.home.restore(self.backup, self.two, **told)

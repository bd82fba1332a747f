"""A data folder on a disk in memory, whose one log moves between two stores, and what a service finds in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from hubweir.errors import ServiceError
from hubweir.messaging_store.disk.layout import LOGS_FOLDER, NEWEST_FOLDER
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.messaging_store.tests.conftest import events, messages_of
from hubweir.namespace.catalog_log import load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.data_folder import CATALOG_FOLDER, store_folder
from hubweir.service.log_move import LogMove, Moved
from hubweir.testing.answers import answered, made_log, opened_log, runs_of, snapshot_of
from hubweir.testing.memory_faults import Ended, Fault, Plan
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")
SMALL = LogSettings(segment_bytes=4000, tail_bytes=600)


class World:
    """A data folder of two stores on a disk in memory: a hub with one partition, in store-0, and what is in it."""

    def __init__(self, seed: int = 3, *, durability: Durability = Durability.DURABLE, events_count: int = 40) -> None:
        self.env = SimulatedEnv(seed)
        self.expected: dict[int, bytes] = {}
        self.log_id = ""
        self.durability = durability
        self._end: Plan | None = None  # of the process
        self._make()
        self.append(events_count)
        self.end_process()

    @property
    def files(self) -> MemoryFiles:
        return self.env.files

    def end_process(self, *, power_cut: bool = False) -> None:
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def move(self, target: int = 1, on_bytes: Callable[[int], None] = lambda count: None) -> Moved:
        """Run the command in this world."""
        return LogMove(self.env, lambda folder: self.env, self._wait_for, "data").move(self.log_id, target, on_bytes)

    def _wait_for(self, start: Callable[[Callable[[T], None]], object]) -> T:
        if self._end is not None and self._end.fired:
            raise Ended  # a process that has ended waits for nothing
        return answered(self.env, start)

    def move_ends(self, fault: Fault, nth: int) -> bool:
        """The command, whose process ends before the nth file call from now; False when it is through before."""
        plan = self._end = self.files.plan(fault, nth, forever=True)
        with suppress(Ended):
            self.move()
        self.files.heal()
        self._end = None
        if plan.fired:
            self.end_process(power_cut=fault is Fault.POWER_CUT)
        return bool(plan.fired)

    # What a service does

    def _make(self) -> None:
        store, writer = self.catalog()
        hub = EventHubDescription("orders", 1, durability=self.durability)
        entity = answered(self.env, partial(writer.begin_create, hub, (0,)))
        assert not isinstance(entity, ServiceError)
        self.log_id = entity.placements[0].log_id
        for index in range(2):
            made = self.open(store_folder(index))
            if not index:
                made_log(self.env, made, self.log_id, durability=self.durability)
            self.close(made)
        assert not isinstance(answered(self.env, partial(writer.commit_create, entity)), ServiceError)
        self.close(store)

    def served_by(self) -> int:
        """The store that the catalog names."""
        store, writer = self.catalog()
        owner = writer.namespace.owner_of(self.log_id)
        self.close(store)
        assert owner is not None
        return owner.placements[0].store_index

    @contextmanager
    def served(self) -> Iterator[tuple[MessagingStore, SegmentLog]]:
        """The log, open in the store that the catalog names, as a service has it."""
        store = self.open(store_folder(self.served_by()))
        store.remove_unfinished()
        yield store, opened_log(self.env, store, self.log_id, durability=self.durability)
        self.close(store)

    def append(self, count: int) -> None:
        """Send so many events more, note something and save a snapshot."""
        with self.served() as (_, log):
            for _ in range(count):
                body = b"event %d " % len(self.expected) * 20
                appended = log.append(events([body]), now_ms=self.env.now_ms(), on_done=lambda outcome: None)
                self.env.run_for(50)
                self.expected[appended.first_index] = body
            if count:
                log.note(b"key", b"of %d" % count, now_ms=self.env.now_ms(), on_done=lambda outcome: None)
                log.save_snapshot(b"state of %d" % count, lambda _: None)
                self.env.run_for(200)

    def check(self) -> int:
        """The log is whole in the store that the catalog names, which it returns; nothing there is to be told."""
        with self.served() as (store, log):
            found: dict[int, bytes] = {}
            for run in runs_of(self.env, log):
                found |= messages_of(run.data)
            assert found == self.expected and log.bounds.next_index == len(self.expected)
            assert store.alarms.current() == ()
            assert log.notes[b"key"].body.startswith(b"of ")
            snapshot = snapshot_of(self.env, log)
            assert snapshot is not None and snapshot.state.startswith(b"state of ")
        return self.served_by()

    def traces(self, index: int) -> list[str]:
        """All names that a store has of the log."""
        folder = store_folder(index)
        names = [*self.files.list(f"{folder}/{LOGS_FOLDER}"), *self.files.list(f"{folder}/{NEWEST_FOLDER}")]
        return [name for name in names if name.startswith(self.log_id)]

    def close(self, store: MessagingStore) -> None:
        over: list[bool] = []
        store.close(lambda: over.append(True))
        self.env.run_for(2_000)
        assert over

    def catalog(self) -> tuple[MessagingStore, CatalogWriter]:
        store = self.open(CATALOG_FOLDER)
        log = made_log(self.env, store, (store.log_ids() or [self.env.new_id()])[0])
        loaded = answered(self.env, partial(load_catalog, log))
        assert not isinstance(loaded, Refused)
        return store, CatalogWriter(log, self.env, loaded)

    def open(self, folder: str) -> MessagingStore:
        return MessagingStore.open(self.env, folder, settings=SMALL, has_retention=folder != CATALOG_FOLDER)


def calls_of_a_move() -> dict[str, int]:
    """How many file calls of the command there are, in all and up to each fault point."""
    world, found = World(), {}
    begun = world.files.calls
    world.env.fault = lambda point: found.update({point: world.files.calls - begun})  # type: ignore[method-assign]
    world.move()
    return {**found, "all": world.files.calls - begun}

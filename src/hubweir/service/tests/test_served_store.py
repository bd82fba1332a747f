"""One store of several: looked for until it is there, kept away by order, and served again when its logs are open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.alarms import STORE_AWAY, Alarms
from hubweir.broker.broker import Broker
from hubweir.counters import Counters
from hubweir.env import Env, Lane
from hubweir.messaging_store.disk.layout import FORMAT_NAME
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.service.served_store import LAST_RETRY_MS, ServedStore, StoreMissing, StoreTakenAway
from hubweir.testing.memory_faults import Fault, fail
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

FOLDER = "store-1"


class Watched:
    """A store on a disk in memory. looks: at which times its folder was looked at.

    folder: where a broker finds the store; another one stands for another disk in its place. opened: what was found.
    """

    def __init__(self, *, has_logs: bool = False) -> None:
        self.files = MemoryFiles(1)
        self.env = SimulatedEnv(1, files=self.files)
        self.counters = Counters()
        self.alarms = Alarms(self.env, self.counters)
        self.looks: list[int] = []
        self.folder = FOLDER
        self.opened: list[MessagingStore] = []
        known = self.files.exists

        def exists(path: str) -> bool:
            if path == f"{FOLDER}/{FORMAT_NAME}":
                self.looks.append(self.env.monotonic_ms())
            return known(path)

        self.files.exists = exists  # type: ignore[method-assign]
        self.store = ServedStore(1, self.env, self.alarms, open_broker=self._open, has_logs=has_logs)

    def _open(self, env: Env) -> Broker:
        store = MessagingStore.open(env, self.folder, counters=self.counters, alarms=self.alarms)
        self.opened.append(store)
        return Broker(env, store, self.counters, alarms=self.alarms)

    def take_away(self) -> None:
        done: list[None] = []
        self.store.take_away(lambda: done.append(None))
        self.env.run_for(1_000)
        assert done == [None], "its folder is free"

    @property
    def is_locked(self) -> bool:
        """Whether a broker holds its folder."""
        return FOLDER in self.files.locks

    def text(self) -> str | None:
        """Of the alarm that it is away; None: it does not stand."""
        [*texts] = [alarm.text for alarm in self.alarms.current() if alarm.kind is STORE_AWAY]
        assert len(texts) <= 1
        return texts[0] if texts else None


@pytest.fixture
def watched() -> Watched:
    return Watched()


def served(watched: Watched) -> Watched:
    watched.store.start()
    watched.env.run_for(1_000)
    assert watched.store.is_up and watched.text() is None
    return watched


def test_a_new_store_is_made_and_one_that_catalogs_name_logs_in_never(watched: Watched) -> None:
    served(watched)
    missing = Watched(has_logs=True)
    missing.store.start()
    missing.env.run_for(60_000)
    assert isinstance(missing.store.problem, StoreMissing) and not missing.files.exists(FOLDER)
    assert "put it back" in (missing.text() or "")


def test_a_store_that_was_open_is_never_made_anew_while_the_process_lives(watched: Watched) -> None:
    """When it was opened first, no catalog named a log in it; by now one does."""
    served(watched).take_away()
    watched.files.lose(FOLDER)
    watched.store.bring_back()
    watched.env.run_for(60_000)
    assert isinstance(watched.store.problem, StoreMissing)
    assert not watched.files.exists(FOLDER)


def test_nobody_looks_at_a_store_that_is_taken_away_until_it_is_brought_back(watched: Watched) -> None:
    """A disk that is to be taken out is at rest, also when it was away and looked for before."""
    watched = Watched(has_logs=True)
    watched.store.start()
    watched.env.run_for(10_000)
    looks = len(watched.looks)
    assert looks > 2, "it was looked for again and again"
    watched.take_away()
    watched.env.run_for(10 * LAST_RETRY_MS)
    assert len(watched.looks) == looks
    assert isinstance(watched.store.problem, StoreTakenAway)
    watched.store.bring_back()
    watched.env.run_for(1_000)
    assert len(watched.looks) == looks + 1 and isinstance(watched.store.problem, StoreMissing)


def test_whoever_takes_a_store_away_again_or_ends_the_process_waits_until_its_folder_is_free(watched: Watched) -> None:
    """The threads of its disk end behind the stop: what the broker still writes would never be answered."""
    store = served(watched).store
    told: list[tuple[str, bool]] = []

    def tells(who: str) -> Callable[[], None]:
        return lambda: told.append((who, watched.is_locked))

    store.take_away(tells("away"))
    store.take_away(tells("away again"))
    store.stop(tells("stop"))
    assert told == [] and watched.is_locked
    watched.env.run_for(1_000)
    assert told == [("away", False), ("away again", False), ("stop", False)]
    store.take_away(tells("late"))
    assert told[3:] == [("late", False)]


def test_a_fault_of_one_who_waits_keeps_no_other_from_being_told(watched: Watched) -> None:
    def fails() -> None:
        raise RuntimeError("a fault of whoever waits")

    store = served(watched).store
    told: list[str] = []
    store.take_away(fails)
    store.stop(lambda: told.append("stop"))
    with pytest.raises(RuntimeError, match="whoever waits"):
        watched.env.run_for(1_000)
    assert told == ["stop"]


def test_whoever_waited_for_a_free_folder_is_told_once(watched: Watched) -> None:
    store = served(watched).store
    told: list[str] = []
    store.take_away(lambda: told.append("first"))
    watched.env.run_for(1_000)
    store.bring_back()
    watched.env.run_for(60_000)
    assert store.is_up
    store.take_away(lambda: told.append("second"))
    watched.env.run_for(1_000)
    assert told == ["first", "second"]


def test_a_store_that_is_brought_back_while_its_broker_stops_is_opened_behind_it(watched: Watched) -> None:
    store = served(watched).store
    store.take_away(lambda: None)
    store.bring_back()
    watched.env.run_for(10_000)
    assert store.is_up
    done: list[bool] = []
    store.stop(lambda: done.append(watched.is_locked))
    assert done == []
    watched.env.run_for(1_000)
    assert done == [False]


def test_a_stop_waits_for_the_broker_of_a_disk_that_was_replaced_as_well(watched: Watched) -> None:
    """The old disk removes a log, and hangs; the new one is served meanwhile, and is done first."""
    store = served(watched).store
    watched.env.stall(Lane.REMOVALS)
    watched.opened[0].delete_log("ab" * 16, lambda _: None)
    store.take_away(lambda: None)
    watched.folder = "store-1-anew"
    store.bring_back()
    watched.env.run_for(1_000)
    assert store.is_up and set(watched.files.locks) == {FOLDER, "store-1-anew"}
    done: list[bool] = []
    store.stop(lambda: done.append(watched.is_locked))
    watched.env.run_for(1_000)
    assert done == [] and set(watched.files.locks) == {FOLDER}
    watched.env.go_on(Lane.REMOVALS)
    watched.env.run_for(1_000)
    assert done == [False]


def test_a_store_that_is_taken_away_while_it_stops_is_free_when_it_has_stopped(watched: Watched) -> None:
    store = served(watched).store
    told: list[str] = []
    store.stop(lambda: told.append("stop"))
    store.take_away(lambda: told.append("away"))
    assert told == []
    watched.env.run_for(1_000)
    assert told == ["stop", "away"]


def test_a_look_that_was_under_way_opens_no_store_that_is_taken_away(watched: Watched) -> None:
    watched.store.start()
    watched.take_away()
    watched.env.run_for(60_000)
    assert watched.looks and not watched.store.is_up and isinstance(watched.store.problem, StoreTakenAway)
    watched.store.bring_back()
    watched.env.run_for(1_000)
    assert watched.store.is_up


def test_a_store_whose_logs_could_not_be_listed_is_opened_when_they_can(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder was locked by then, by this very process."""
    with monkeypatch.context() as patch:
        patch.setattr(MessagingStore, "log_ids", lambda _: fail(Fault.EIO, "list"))
        watched.store.start()
        watched.env.run_for(500)
    assert not watched.store.is_up and "Input/output error" in (watched.text() or "")
    watched.env.run_for(2_000)
    assert watched.store.is_up


def test_a_store_that_is_brought_back_twice_is_looked_for_once(watched: Watched) -> None:
    served(watched).take_away()
    looks = len(watched.looks)
    watched.store.bring_back()
    watched.store.bring_back()
    watched.env.run_for(60_000)
    assert watched.store.is_up and len(watched.looks) == 2 * looks, "as often as at the start"


def test_the_alarm_of_a_store_that_came_back_stands_until_its_logs_are_open(watched: Watched) -> None:
    served(watched).take_away()
    assert "was taken away" in (watched.text() or "")
    watched.store.opened()
    assert watched.text() is not None, "who says so speaks of an earlier time"
    watched.store.bring_back()
    watched.env.run_for(60_000)
    assert watched.store.is_up and "its logs are being opened" in (watched.text() or "")
    watched.store.opened()
    assert watched.text() is None


def test_the_end_of_the_process_ends_the_looks(watched: Watched) -> None:
    watched = Watched(has_logs=True)
    watched.store.start()
    watched.env.run_for(10_000)
    done: list[None] = []
    watched.store.stop(lambda: done.append(None))
    looks = len(watched.looks)
    watched.env.run_for(60_000)
    assert done == [None] and len(watched.looks) == looks

"""The catalog on a real log: snapshots, faults, and what a power cut at any moment leaves. (Fixtures: conftest.py)"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from hubweir.errors import STORE_OFFLINE, CorruptStore, LogOffline, ServiceError
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.log import Log, Refused, Replayed, Run, Snapshot
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_log import OPERATIONS_PER_SNAPSHOT, load_catalog
from hubweir.namespace.catalog_operation import Operation, RecordUsage, encode
from hubweir.namespace.entity import EntityDescription, EntityStatus
from hubweir.namespace.event_hub_changes import add_group
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.tests.conftest import CATALOG
from hubweir.namespace.tiers import HOUR_MS
from hubweir.testing.answers import answered, made_log, snapshot_of
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv


def test_a_long_history_is_restored_from_a_snapshot_and_the_rest_of_the_log(process: Any) -> None:
    process.create("hub")
    for number in range(OPERATIONS_PER_SNAPSHOT):
        process.set("hub", retention_ms=HOUR_MS + number)
    before = process
    assert snapshot_of(process.env, process.log) is not None
    after = process.restarted()
    assert after.namespace.version == before.namespace.version == OPERATIONS_PER_SNAPSHOT + 2
    assert after.hubs() == before.hubs()
    assert after.create("hub2").name == "hub2"
    assert [hub.name for hub in after.restarted().hubs()] == ["hub", "hub2"]


def test_a_disk_that_fails_leaves_the_state_as_it_was_and_heals(process: Any) -> None:
    process.create("hub")
    process.env.files.plan(Fault.EIO, forever=True)
    with pytest.raises(ServiceError):
        process.create("lost")
    assert process.hub("lost") is None
    with pytest.raises(ServiceError) as refused:
        process.change("hub", add_group, name="g")
    assert refused.value.condition is STORE_OFFLINE
    process.env.files.heal()
    after = process.restarted()
    assert [hub.name for hub in after.hubs()] == ["hub"]
    assert after.create("found").name == "found"


def history(process: Any, answered: list[str]) -> None:
    """Create, change and delete; every answer is noted when it comes."""
    writer = process.writer

    def then(name: str, step: Callable[[Any], None]) -> Callable[[Any], None]:
        """Note the answer, and go on with a step about the entity that it names; a refusal ends the history."""

        def done(answer: Any) -> None:
            if not isinstance(answer, ServiceError):
                answered.append(name)
                step(answer)

        return done

    def create(name: str, step: Callable[[Any], None]) -> None:
        def commit(intent: Any) -> None:
            writer.commit_create(intent, then(f"commit {name}", step))

        writer.begin_create(EventHubDescription(name, 1), [0], then(f"intend {name}", commit))

    def change(kept: Any) -> None:
        group = partial(add_group, name="g")
        writer.change("kept", EventHubDescription, group, then("group", lambda _: create("gone", delete)))

    def delete(gone: Any) -> None:
        writer.begin_delete("gone", EventHubDescription, then("delete gone", commit_delete))

    def commit_delete(intent: Any) -> None:
        writer.commit_delete(intent, then("commit delete gone", lambda _: None))

    create("kept", change)
    process.env.run_for(5_000)


STEPS = ["intend kept", "commit kept", "group", "intend gone", "commit gone", "delete gone", "commit delete gone"]


def statuses(namespace: Namespace) -> dict[str, EntityStatus]:
    return {each.name: each.status for each in (*namespace.entities(EntityDescription), *namespace.unfinished())}


def carry_on(process: Any) -> None:
    """What the keeper of the catalog does at a start, when the brokers have done their part."""
    for entity in process.namespace.unfinished():
        making = entity.status is EntityStatus.CREATING
        commit = process.writer.commit_create if making else process.writer.commit_delete
        process.ask(partial(commit, entity))


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.SHORT, Fault.ENOSPC, Fault.SYNC_EIO])
@pytest.mark.parametrize("forever", [False, True])
def test_after_a_fault_at_any_call_memory_and_log_agree(fault: Fault, forever: bool, start: Any) -> None:
    """Fails the n-th call of the disk, then heals it: refused steps are gone, answered ones are there, also later."""
    for nth in range(1, 12):
        process, answered = start(SimulatedEnv(nth)), list[str]()
        process.env.files.plan(fault, nth, forever=forever)
        history(process, answered)
        process.env.files.heal()
        process.env.run_for(5_000)
        if nth % 2:
            with suppress(ServiceError):  # the log may stay offline until a restart
                process.create(f"later{nth}")
        shown = {hub.name: hub for hub in process.hubs()}
        after = process.restarted(power_cut=nth % 3 == 0)
        carry_on(after)
        kept = {hub.name: hub for hub in after.hubs()}
        assert all(kept.get(name) == hub for name, hub in shown.items()), (nth, fault)
        assert ("commit kept" in answered) <= ("kept" in kept)
        assert after.create("last").name == "last"


@pytest.mark.parametrize("seed", range(8))
def test_a_power_cut_at_every_call_leaves_the_answered_steps_and_what_is_unfinished_is_carried_on(
    seed: int, start: Any
) -> None:
    """Cuts the power before the n-th call of the disk for every n, restarts, and compares with the answers."""
    calls, reached = 0, set()
    while calls < 500:
        calls += 1
        process, answered = start(SimulatedEnv(seed, files=MemoryFiles(seed))), list[str]()
        process.env.files.plan(Fault.POWER_CUT, calls)
        try:
            history(process, answered)
        except PowerCut:
            process.env.files.heal()
            after = process.restarted()
        else:
            break
        done = after.namespace.version
        # One change is on its way at a time, so at most one more than was answered is there.
        assert answered == STEPS[: len(answered)]
        assert len(answered) <= done <= len(answered) + 1
        reached.add(done)
        expected = [{}, {"kept": EntityStatus.CREATING}, {"kept": EntityStatus.ACTIVE}, {"kept": EntityStatus.ACTIVE}]
        expected += [{"kept": EntityStatus.ACTIVE, "gone": status} for status in EntityStatus]
        expected += [{"kept": EntityStatus.ACTIVE}]
        assert statuses(after.namespace) == expected[done]
        carry_on(after)
        assert after.namespace.unfinished() == ()
        again = after.restarted()
        assert again.namespace.unfinished() == ()
        assert again.hubs() == after.hubs()
    assert reached == set(range(len(STEPS) + 1)), f"cuts reached only {sorted(reached)}"
    assert statuses(process.namespace) == {"kept": EntityStatus.ACTIVE}


def doubt(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next change is stored, and its outcome is told as unknown, as a log may."""
    append = process.log.append

    def in_doubt(run: bytearray, *, now_ms: int, on_done: Callable[[object], None]) -> object:
        monkeypatch.setattr(process.log, "append", append)
        lost = Refused(LogOffline("nobody knows"), known=False)
        return append(run, now_ms=now_ms, on_done=lambda outcome: on_done(lost))

    monkeypatch.setattr(process.log, "append", in_doubt)


def test_a_change_whose_outcome_is_unknown_is_looked_for_before_the_next_one(
    process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.create("first")
    doubt(process, monkeypatch)
    with pytest.raises(ServiceError, match="unknown"):
        process.create("second")
    assert process.namespace.unfinished() == ()
    with pytest.raises(ServiceError, match="is being created"):
        process.create("SECOND")
    (second,) = process.namespace.unfinished()
    process.ask(partial(process.writer.commit_create, second))
    assert [hub.name for hub in process.hubs()] == ["first", "second"]
    assert process.namespace.version == 4, "each change was applied once"
    after = process.restarted()
    assert after.hubs() == process.hubs() and after.namespace.version == 4


def test_what_a_doubt_turns_out_to_be_is_told_to_whoever_reads_though_the_next_change_is_refused(
    process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.create("first")
    doubt(process, monkeypatch)
    versions: list[int] = []
    with pytest.raises(ServiceError, match="unknown"):
        process.begin_delete("first")
    told = process.writer._log.on_applied
    process.writer._log.on_applied = lambda: (told(), versions.append(process.namespace.version))
    with pytest.raises(ServiceError, match="is being deleted"):
        process.create("first")
    assert versions == [3] and process.hub("first") is None


def test_while_a_doubt_cannot_be_settled_every_change_is_refused_and_afterwards_none(
    process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.create("first")
    doubt(process, monkeypatch)
    with pytest.raises(ServiceError, match="unknown"):
        process.begin("second", 1)
    process.env.files.plan(Fault.EIO, forever=True)
    answers: list[Any] = []
    for name in ("third", "fourth"):
        process.writer.begin_create(EventHubDescription(name, 1), [0], answers.append)
    assert answers == []
    process.env.run_for(1_000)
    assert [answer.condition for answer in answers] == [STORE_OFFLINE] * 2
    process.env.files.heal()
    process.env.run_for(60_000)
    assert process.create("third").name == "third" and process.restarted().hub("third") is not None


def test_a_catalog_that_is_damaged_behind_its_snapshot_is_not_read(process: Any) -> None:
    process.create("first")
    process.env.run_for(5_000)
    process.create("second")
    process.env.crash()
    (path,) = [path for path in process.env.files.paths() if path.endswith(".log")]
    data = process.env.files.bytes_of(path)
    data[data.index(b"first")] ^= 1
    env = process.env.restart()
    log = made_log(env, MessagingStore.open(env, "catalog"), CATALOG)
    outcome = answered(env, partial(load_catalog, log))
    assert isinstance(outcome, Refused) and isinstance(outcome.error, CorruptStore)


class SavedLog:
    """A catalog's log: a snapshot up to an index, and one run of operations behind it."""

    def __init__(self, catalog: Catalog, index: int, first_index: int, *operations: Operation) -> None:
        self._snapshot = Snapshot(index, 0, catalog.snapshot())
        run = pack_operations([encode(operation) for operation in operations])
        complete_run(run, LogEnd(first_index), nonce=1, enqueued_time_ms=0, durable_upto=0, writer_epoch=1)
        self._run = Run(bytes(run), first_index, first_index + len(operations))

    def load_snapshot(self, read: Callable[[Snapshot], Any], on_done: Callable[[Any], None]) -> None:
        on_done(read(self._snapshot))

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Any], None]) -> None:
        visit(self._run)
        on_done(Replayed())


@pytest.mark.parametrize("first_index", [4, 5, 1_000])
def test_a_catalog_is_read_from_the_snapshots_index_on_also_behind_numbers_that_were_skipped(first_index: int) -> None:
    operations = [RecordUsage(((hour, 1),), 0) for hour in range(3)]
    loaded: list[Any] = []
    load_catalog(cast(Log, SavedLog(Catalog(), 5, first_index, *operations)), loaded.append)
    (found,) = loaded
    applied = operations[max(0, 5 - first_index) :]
    assert (found.next_index, found.replayed) == (first_index + 3, len(applied))
    assert found.catalog.version == len(applied)


def test_operations_that_a_start_replayed_count_towards_the_next_snapshot(process: Any) -> None:
    process.create("hub")
    for number in range(OPERATIONS_PER_SNAPSHOT - 3):
        process.set("hub", retention_ms=HOUR_MS + number)
    after = process.restarted()
    assert snapshot_of(after.env, after.log) is None
    after.set("hub", retention_ms=2 * HOUR_MS)
    assert snapshot_of(after.env, after.log) is not None

"""The catalog on a real log: snapshots, faults, and what a power cut at any moment leaves. (Fixtures: conftest.py)"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.namespace.catalog_log import OPERATIONS_PER_SNAPSHOT
from hubweir.namespace.descriptions import HOUR_MS, EntityStatus, EventHubDescription
from hubweir.namespace.namespace import Namespace
from hubweir.testing.memory_files import Fault, MemoryFiles, PowerCut
from hubweir.testing.simulated_env import SimulatedEnv


def test_a_long_history_is_restored_from_a_snapshot_and_the_rest_of_the_log(process: Any) -> None:
    process.create("hub")
    for number in range(OPERATIONS_PER_SNAPSHOT):
        process.ask(
            lambda done, number=number: process.namespace.change_hub("hub", done, retention_ms=HOUR_MS + number)
        )
    before = process.namespace
    assert process.log.load_snapshot() is not None
    after = process.restarted()
    assert after.namespace.version == before.version == OPERATIONS_PER_SNAPSHOT + 2
    assert after.namespace.hubs() == before.hubs()
    assert after.create("hub2").name == "hub2"
    assert [hub.name for hub in after.restarted().namespace.hubs()] == ["hub", "hub2"]


def test_a_disk_that_fails_leaves_the_state_as_it_was_and_heals(process: Any) -> None:
    process.create("hub")
    process.env.files.plan(1, Fault.EIO, forever=True)
    with pytest.raises(ServiceError):
        process.create("lost")
    assert process.namespace.find_hub("lost") is None
    with pytest.raises(ServiceError) as refused:
        process.ask(lambda done: process.namespace.add_consumer_group("hub", "g", done))
    assert refused.value.condition is STORE_OFFLINE
    process.env.files.heal()
    after = process.restarted()
    assert [hub.name for hub in after.namespace.hubs()] == ["hub"]
    assert after.create("found").name == "found"


def history(process: Any, answered: list[str]) -> None:
    """Create, change and delete; every answer is noted when it comes."""
    namespace = process.namespace

    def note(name: str) -> Callable[[object], None]:
        return lambda answer: answered.append(name) if not isinstance(answer, ServiceError) else None

    namespace.begin_create_hub(EventHubDescription("kept", 3), [0], note("intend kept"))
    namespace.commit_create_hub("kept", note("commit kept"))
    namespace.add_consumer_group("kept", "g", note("group"))
    namespace.begin_create_hub(EventHubDescription("gone", 1), [0], note("intend gone"))
    namespace.commit_create_hub("gone", note("commit gone"))
    namespace.begin_delete_hub("gone", note("delete gone"))
    namespace.commit_delete_hub("gone", note("commit delete gone"))
    process.env.run_for(5_000)


STEPS = ["intend kept", "commit kept", "group", "intend gone", "commit gone", "delete gone", "commit delete gone"]


def statuses(namespace: Namespace) -> dict[str, EntityStatus]:
    return {hub.name: hub.description.status for hub in (*namespace.hubs(), *namespace.unfinished())}


def carry_on(process: Any) -> None:
    """What the keeper of the catalog does at a start, when the brokers have done their part."""
    namespace = process.namespace
    for hub in namespace.unfinished():
        making = hub.description.status is EntityStatus.CREATING
        commit = namespace.commit_create_hub if making else namespace.commit_delete_hub
        process.ask(lambda done, commit=commit, name=hub.name: commit(name, done))


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.SHORT, Fault.ENOSPC, Fault.SYNC_EIO])
@pytest.mark.parametrize("forever", [False, True])
def test_after_a_fault_at_any_call_memory_and_log_agree(fault: Fault, forever: bool, start: Any) -> None:
    """Fails the n-th call of the disk, then heals it: refused steps are gone, answered ones are there, also later."""
    for nth in range(1, 12):
        process, answered = start(SimulatedEnv(nth)), list[str]()
        process.env.files.plan(process.env.files.calls + nth, fault, forever=forever)
        history(process, answered)
        process.env.files.heal()
        process.env.run_for(5_000)
        if nth % 2:
            with suppress(ServiceError):  # the log may stay offline until a restart
                process.create(f"later{nth}")
        shown = {hub.name: hub for hub in process.namespace.hubs()}
        after = process.restarted(power_cut=nth % 3 == 0)
        carry_on(after)
        kept = {hub.name: hub for hub in after.namespace.hubs()}
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
        process.env.files.plan(process.env.files.calls + calls, Fault.POWER_CUT)
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
        again = after.restarted().namespace
        assert again.unfinished() == ()
        assert again.hubs() == after.namespace.hubs()
    assert reached == set(range(len(STEPS) + 1)), f"cuts reached only {sorted(reached)}"
    assert statuses(process.namespace) == {"kept": EntityStatus.ACTIVE}

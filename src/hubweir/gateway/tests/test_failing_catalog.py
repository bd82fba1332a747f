"""Hubs are made, changed and removed while file calls fail: whole, taken back or carried on, and the answers say which.

The catalog, its keeper, the broker and the store stand together; the n-th call that a fault fits fails, once or from
then on. Then the disk is sound again, and the service goes on, and after that it starts anew. What was answered as done
is there; what was refused is not, unless the answer says that it goes on; nothing stays half done, and no log is left
that no hub names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hubweir.broker.commands.partition import ChangePartition, CreatePartition, DeletePartition
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import Plan
from hubweir.testing.simulated_env import SimulatedEnv

GOES_ON = "the service goes on with it by itself"
HEAL_MS = 60_000  # the longest waits of a log and of the keeper, one behind the other
SICK = Refusal(STORE_OFFLINE, "the disk is sick")


class Story:
    """What clients asked for, and what may be true of each hub, by its number of partitions; 0: there is none."""

    def __init__(self, fault: Fault, nth: int, *, forever: bool) -> None:
        self.world = World(hubs={"kept": 1}, env=SimulatedEnv(7))
        self.possible: dict[str, set[int]] = {"a": {0}, "b": {0}}
        self.plan: Plan = self.world.env.files.plan(fault, nth, forever=forever)

    def tell(self) -> None:
        keeper = self.world.gateway.keeper
        create = keeper.create
        self._ask("a", 2, lambda done: create(EventHubDescription("a", 2), done))
        self._ask("b", 1, lambda done: create(EventHubDescription("b", 1), done))
        self._ask("a", 0, lambda done: keeper.delete("a", EventHubDescription, done))
        self._ask("a", 3, lambda done: create(EventHubDescription("a", 3), done))
        self._ask("b", 0, lambda done: keeper.delete("b", EventHubDescription, done))

    def _ask(self, name: str, count: int, call: Callable[[Callable[[Any], None]], None]) -> None:
        before = self.possible[name]
        self.possible[name] = before | {count}  # as long as there is no answer
        answers: list[Any] = []
        call(answers.append)
        for _ in range(400):
            if answers:
                break
            self.world.env.run_for(5)
        if answers and not isinstance(answers[0], ServiceError):
            self.possible[name] = {count}
        elif answers and GOES_ON not in answers[0].text and "unknown" not in answers[0].text:
            self.possible[name] = before

    def check(self, world: World) -> None:
        assert world.namespace.unfinished() == ()
        hubs = {hub.name: hub for hub in world.namespace.entities(EventHubDescription)}
        for name, possible in self.possible.items():
            found = hubs[name].description.partition_count if name in hubs else 0
            assert found in possible, (name, found, possible)
        named = {placement.log_id for hub in hubs.values() for placement in hub.placements}
        assert named == set(world.store.log_ids())
        assert "kept" in hubs

    def restart(self, *, power_cut: bool) -> None:
        self.world.env.crash(power_cut=power_cut)
        world = World(env=self.world.env.restart())
        assert world.problems == []
        world.run_for(2_000)
        self.check(world)


@pytest.mark.parametrize("forever", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("fault", [Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC, Fault.EMFILE, Fault.POWER_CUT])
def test_whatever_call_fails_nothing_stays_half_done_and_no_answer_is_wrong(
    fault: Fault, forever: bool, measure: Callable[[int], int]
) -> None:
    if fault is Fault.POWER_CUT and forever:
        pytest.skip("there is no second one")
    step = 50 // measure(50)
    nth = 1 + step // 2
    while True:
        story = Story(fault, nth, forever=forever)
        try:
            story.tell()
        except PowerCut:
            story.world.env.files.heal()
        else:
            story.world.env.files.heal()
            story.world.env.run_for(HEAL_MS)
            story.check(story.world)
        story.restart(power_cut=nth % 2 == 0 or fault is Fault.POWER_CUT)
        if not story.plan.fired:
            return
        nth += step


def test_a_step_that_is_not_tried_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CatalogKeeper, "_try_again", lambda self: None)
    with pytest.raises(AssertionError):
        for nth in range(1, 120, 3):
            story = Story(Fault.EIO, nth, forever=False)
            story.tell()
            story.world.env.files.heal()
            story.world.env.run_for(HEAL_MS)
            story.check(story.world)


def ask(world: World, call: Callable[[Callable[[Any], None]], None]) -> list[Any]:
    answers: list[Any] = []
    call(answers.append)
    world.run_for(500)
    return answers


def test_a_deletion_is_not_committed_while_a_partition_cannot_be_removed() -> None:
    world = World(hubs={"doomed": 2})
    world.gate.refuse[DeletePartition] = SICK
    (answer,) = ask(world, lambda done: world.gateway.keeper.delete("doomed", EventHubDescription, done))
    assert isinstance(answer, ServiceError) and GOES_ON in answer.text
    world.run_for(20_000)
    assert [entry.name for entry in world.namespace.unfinished()] == ["doomed"]
    assert len(world.store.log_ids()) == 2
    again = world.create_hub("doomed", 1)
    assert isinstance(again, ServiceError), "its name is taken until it is gone"
    del world.gate.refuse[DeletePartition]
    world.run_for(31_000)
    assert world.namespace.unfinished() == () and world.store.log_ids() == []
    assert isinstance(world.create_hub("doomed", 1), EventHubDescription)


def test_a_deletion_that_is_asked_for_again_while_it_goes_on_is_answered_at_its_end() -> None:
    world = World(hubs={"doomed": 2})
    world.gate.refuse[DeletePartition] = SICK
    ask(world, lambda done: world.gateway.keeper.delete("doomed", EventHubDescription, done))
    del world.gate.refuse[DeletePartition]
    (answer,) = ask(world, lambda done: world.gateway.keeper.delete("doomed", EventHubDescription, done))
    assert isinstance(answer, EventHubDescription)
    world.run_for(5_000)
    assert world.namespace.unfinished() == () and world.namespace.find("doomed", EventHubDescription) is None


def test_a_hub_that_is_deleted_while_it_is_made_leaves_no_log() -> None:
    world = World(hubs={"kept": 1})
    answers: list[Any] = []
    keeper = world.gateway.keeper
    world.gate.hold[CreatePartition] = []
    keeper.create(EventHubDescription("brief", 4), lambda answer: answers.append(("made", answer)))
    world.run_for(200)
    keeper.delete("brief", EventHubDescription, lambda answer: answers.append(("deleted", answer)))
    world.run_for(200)
    world.gate.release(CreatePartition)
    world.run_for(2_000)
    (made, refusal), (deleted, gone) = answers
    assert (made, deleted) == ("made", "deleted")
    assert isinstance(refusal, ServiceError) and "is being deleted" in refusal.text
    assert isinstance(gone, EventHubDescription)
    assert len(world.store.log_ids()) == 1 and world.namespace.unfinished() == ()


def test_settings_that_a_partition_did_not_take_are_told_again() -> None:
    world = World(hubs={"hub": 2})
    world.gate.refuse[ChangePartition] = SICK
    wanted = EventHubDescription("hub", 2, retention_ms=7_200_000)
    its = partial(set_settings, wanted=wanted)
    (answer,) = ask(world, lambda done: world.gateway.keeper.change("hub", EventHubDescription, its, done))
    assert isinstance(answer, ServiceError) and GOES_ON in answer.text and "are stored" in answer.text
    assert world.gateway.management.hub("hub").retention_ms == 7_200_000
    world.run_for(10_000)
    del world.gate.refuse[ChangePartition]
    world.run_for(31_000)
    assert {hosted.retention_ms for hosted in world.broker._residents} == {7_200_000}
    told = len(world.gate.sent(ChangePartition))
    world.run_for(60_000)
    assert len(world.gate.sent(ChangePartition)) == told


def test_a_creation_that_was_to_be_taken_back_is_taken_back_when_the_catalog_can_be_written_again() -> None:
    world = World(hubs={"kept": 1})
    world.gate.hold[CreatePartition] = []
    answers: list[Any] = []
    world.gateway.keeper.create(EventHubDescription("a", 2), answers.append)
    world.run_for(200)
    world.env.files.plan(Fault.EIO, forever=True)
    world.gate.release(CreatePartition)
    world.run_for(500)
    (answer,) = answers
    assert isinstance(answer, ServiceError) and GOES_ON in answer.text
    world.env.files.heal()
    world.run_for(HEAL_MS)
    assert world.namespace.unfinished() == () and world.namespace.find("a", EventHubDescription) is None
    assert len(world.store.log_ids()) == 1


def test_a_failure_after_a_long_one_is_tried_again_as_soon_as_the_first() -> None:
    world = World(hubs={"a": 1, "b": 1})
    for name, away_ms in (("a", 100_000), ("b", 100)):
        world.gate.refuse[DeletePartition] = SICK
        ask(world, lambda done, name=name: world.gateway.keeper.delete(name, EventHubDescription, done))
        world.run_for(away_ms)
        del world.gate.refuse[DeletePartition]
        world.run_for(31_000 if name == "a" else 1_500)
        assert world.namespace.unfinished() == ()


@pytest.mark.parametrize("has_failed", [False, True])
def test_nothing_is_tried_again_while_the_service_stops(has_failed: bool) -> None:
    world = World(hubs={"a": 1})
    world.gate.refuse[DeletePartition] = SICK
    if has_failed:
        ask(world, lambda done: world.gateway.keeper.delete("a", EventHubDescription, done))
    world.gateway.keeper.stop()
    tried = len(world.gate.sent(DeletePartition))
    ask(world, lambda done: world.gateway.keeper.delete("a", EventHubDescription, done))
    world.run_for(60_000)
    assert len(world.gate.sent(DeletePartition)) == tried + 1

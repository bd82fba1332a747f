"""The open runs of a process: one append a partition and turn, and a fault of one partition that harms no other."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AppendEvents, EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.counters import Latency
from hubweir.env import Env
from hubweir.errors import SERVER_BUSY
from hubweir.gateway import append_queue
from hubweir.gateway.append_queue import AppendQueue, DeliveryRange, PendingAppend, Submission, Units
from hubweir.gateway.directory import PartitionPlace
from hubweir.kernels.contract import D_LENGTH, DELIVERY_WIDTH
from hubweir.messaging_store.record import headers_of
from hubweir.throughput_unit.admission import Admitted

MESSAGE = b"\x00\x53\x75\xa0\x01x"


class Link:
    """Notes what it is told; one that is broken raises."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken
        self.answers: list[Answer] = []

    def answered(self, submission: Submission, answer: Answer) -> None:
        if self.broken:
            raise ValueError("planted")
        self.answers.append(answer)


class BrokerStub:
    """Accepts everything, but for one log whose code has a fault."""

    def __init__(self) -> None:
        self.appends: list[AppendEvents] = []
        self.faulty = ""
        self.faulty_behind_its_answer = ""

    def submit(self, command: Any, on_answer: Callable[[Answer], None]) -> None:
        self.appends.append(command)
        if command.log_id == self.faulty:
            raise ValueError("planted")
        on_answer(EventsAppended(0, 1))
        if command.log_id == self.faulty_behind_its_answer:
            raise ValueError("planted")


class World:
    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []  # of the next turn
        self.ends: list[Callable[[], None]] = []  # of the end of this one
        self.broker = BrokerStub()
        self.now_s = 0.0
        env = SimpleNamespace(call_soon=self.soon.append, at_turn_end=self.ends.append, monotonic_s=lambda: self.now_s)
        self.latency = Latency()
        self.queue = AppendQueue(
            cast(Env, env),
            lambda broker, command, pending: broker.submit(command, pending.answered),
            run_limit_bytes=1_000_000,
            latency=self.latency,
        )

    def add(self, log_id: str, link: Link) -> None:
        rows = array("q", bytes(8 * DELIVERY_WIDTH))
        rows[D_LENGTH] = len(MESSAGE)
        partition = self.queue.of(PartitionPlace("hub", "0", log_id, self.broker))
        assert partition.run.add_deliveries(memoryview(MESSAGE), rows, 0, 1).row == 1
        partition.add_submissions([Submission(link, DeliveryRange(0, 0), 1, len(MESSAGE), False)])

    def end_turn(self) -> None:
        while self.ends:
            self.ends.pop(0)()
        self.ends += self.soon
        self.soon.clear()


@pytest.fixture
def world() -> World:
    return World()


def test_the_links_of_a_turn_share_one_append_a_partition(world: World) -> None:
    links = [Link(), Link(), Link()]
    for link, log_id in zip(links, ("a", "b", "a"), strict=True):
        world.add(log_id, link)
    assert world.broker.appends == []
    world.end_turn()
    assert [append.log_id for append in world.broker.appends] == ["a", "b"]
    assert sum(header.count for header in headers_of(world.broker.appends[0].run)) == 2
    assert [len(link.answers) for link in links] == [1, 1, 1]


def test_of_very_many_runs_some_go_each_turn_in_order(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_queue, "SUBMITTED_AT_ONCE", 2)
    link, sent = Link(), []
    for log_id in "abcde":
        world.add(log_id, link)
    for more in "ca", "", "", "":
        world.end_turn()
        sent.append("".join(append.log_id for append in world.broker.appends))
        for log_id in more:
            world.add(log_id, link)
    # c was open already and takes what comes; a was submitted, so it opens again behind the others.
    assert sent == ["ab", "abcd", "abcdea", "abcdea"] and len(link.answers) == 7
    assert sum(header.count for header in headers_of(world.broker.appends[2].run)) == 2
    assert world.soon == world.ends == []


def test_a_fault_of_one_partition_is_an_unknown_outcome_there_and_nothing_elsewhere(world: World, caplog: Any) -> None:
    world.broker.faulty = "a"
    links = [Link(), Link()]
    for link, log_id in zip(links, ("a", "b"), strict=True):
        world.add(log_id, link)
    world.end_turn()
    (answer,) = links[0].answers
    assert isinstance(answer, Refusal) and not answer.known
    assert links[1].answers == [EventsAppended(0, 1)]
    assert "planted" in caplog.text
    world.broker.faulty = ""
    world.add("a", links[0])
    world.end_turn()
    assert links[0].answers[1:] == [EventsAppended(0, 1)]


def test_a_fault_behind_an_answer_is_no_second_answer(world: World, caplog: Any) -> None:
    world.broker.faulty_behind_its_answer, link = "a", Link()
    world.add("a", link)
    world.end_turn()
    assert link.answers == [EventsAppended(0, 1)] and "planted" in caplog.text


def test_what_a_run_has_cost_is_given_back_once_when_it_is_not_stored() -> None:
    given_back: list[tuple[Admitted, Answer]] = []
    units = cast(Units, SimpleNamespace(not_stored=lambda admitted, answer: given_back.append((admitted, answer))))
    link, admitted, refusal = Link(), Admitted(1, 1, 0), Refusal(SERVER_BUSY, "wait")
    pending = PendingAppend([Submission(link, DeliveryRange(0, 0), 1, 1, False)], units, admitted)
    for _ in range(2):
        pending.answered(refusal)
    assert (link.answers, given_back) == ([refusal], [(admitted, refusal)])


def test_a_link_with_a_fault_keeps_no_answer_from_the_others(world: World, caplog: Any) -> None:
    links = [Link(broken=True), Link()]
    for link in links:
        world.add("a", link)
    world.end_turn()
    assert links[1].answers == [EventsAppended(0, 1)]
    assert "planted" in caplog.text


def test_a_run_that_is_accepted_is_timed_from_its_first_delivery_and_no_other_is(world: World) -> None:
    link = Link()
    world.now_s = 1.0
    world.add("a", link)
    world.now_s = 1.25
    world.add("a", link)
    world.now_s = 1.5
    world.end_turn()
    assert world.latency.sum_s == 0.5 and sum(world.latency.buckets) == world.latency.buckets[19] == 1
    world.broker.faulty = "b"
    world.add("b", link)
    world.end_turn()
    assert isinstance(link.answers[-1], Refusal) and sum(world.latency.buckets) == 1


def test_an_answer_that_comes_twice_is_timed_once() -> None:
    latency = Latency()
    pending = PendingAppend(
        [Submission(Link(), DeliveryRange(0, 0), 1, 1, False)], clock=lambda: 2.0, began_s=1.0, latency=latency
    )
    for _ in range(2):
        pending.answered(EventsAppended(0, 1))
    assert sum(latency.buckets) == 1

"""Requests about broker processes, by $management."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, encode_message
from hubweir.broker.commands.broker_process import (
    AskProcesses,
    BrokerFault,
    MarkStore,
    OrderFault,
    ProcessesTold,
    ProcessTold,
)
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Done, Refusal
from hubweir.errors import NOT_FOUND, TIMED_OUT
from hubweir.gateway.amqp.broker_requests import ANSWER_MS, AWAY, BROKER, STORE, UNKNOWN
from hubweir.gateway.amqp.tests.test_management_node import ask
from hubweir.gateway.amqp.tests.world import Peer, World, quotas, status_of


class Supervisor:
    """Answers as one with two processes."""

    is_up = True
    is_stalled = False

    def __init__(self) -> None:
        self.asked: list[Command] = []
        self.unanswered: list[Callable[[Answer], None]] = []

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(command)
        if self.is_stalled:
            self.unanswered.append(on_answer)
        elif isinstance(command, AskProcesses):
            on_answer(
                ProcessesTold(
                    (ProcessTold(0, 11, (0, 2), "serves", 5, 1, (2,)), ProcessTold(1, 0, (1,), "stopped", 0, 2, ()))
                )
            )
        elif command == OrderFault(7, BrokerFault.KILL):
            on_answer(Refusal(NOT_FOUND, "there is no broker process 7"))
        elif command == MarkStore(7, is_away=True):
            on_answer(Refusal(NOT_FOUND, "there is no messaging store 7"))
        else:
            on_answer(Done())

    def listen(self, on_push: Callable[[Any], None]) -> None:
        """It pushes nothing."""


class Asked:
    """A request that is not answered at once."""

    def __init__(self, peer: Peer, operation: str, kind: str, fault: str) -> None:
        said = {"operation": operation, "type": kind, "name": "1", "fault": fault}
        self._peer = peer
        self._reply = peer.receiver("$management", credit=10)
        message = Message(properties=Properties(message_id="m"), application_properties=said, body=ValueBody(None))
        peer.sender("$management").send(encode_message(message), settled=False)
        peer.run()

    @property
    def answers(self) -> list[Message]:
        return self._peer.received(self._reply)


@pytest.fixture
def world() -> World:
    made = World()
    made.process.supervisor = Supervisor()
    return made


def test_processes_are_listed(world: World) -> None:
    answer = ask(world.trusted_peer(), "LIST", BROKER, "")
    assert status_of(answer) == (200, "OK")
    assert answer.body.value == [  # type: ignore[union-attr]
        {"broker": 0, "pid": 11, "stores": [0, 2], "state": "serves", "connections": 5, "starts": 1, "away": [2]},
        {"broker": 1, "pid": 0, "stores": [1], "state": "stopped", "connections": 0, "starts": 2, "away": []},
    ]


@pytest.mark.parametrize("fault", BrokerFault)
def test_a_fault_is_ordered(world: World, fault: BrokerFault) -> None:
    answer = ask(world.trusted_peer(), "UPDATE", BROKER, "1", fault=fault.value)
    assert status_of(answer) == (200, "OK")
    assert world.process.supervisor.asked == [OrderFault(1, fault)]  # type: ignore[union-attr]


@pytest.mark.parametrize("fault", ["away", "back"])
def test_a_store_is_marked(world: World, fault: str) -> None:
    answer = ask(world.trusted_peer(), "UPDATE", STORE, "2", fault=fault)
    assert status_of(answer) == (200, "OK")
    assert answer.body.value == {"store": 2, "fault": fault}  # type: ignore[union-attr]
    assert world.process.supervisor.asked == [MarkStore(2, fault == "away")]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("what", "name", "fault", "status", "text"),
    [
        (STORE, "1", "kill", 400, "The fault is one of away, back"),
        (STORE, "", "away", 400, "its number"),
        (STORE, "7", "away", 404, "there is no messaging store 7"),
        (BROKER, "1", "explode", 400, "The fault is one of start, stop, kill, stall"),
        (BROKER, "x", "kill", 400, "its number"),
        (BROKER, "\u0661", "kill", 400, "its number"),
        (BROKER, "1000", "kill", 400, "its number"),
        (BROKER, "7", "kill", 404, "there is no broker process 7"),
    ],
)
def test_what_makes_no_sense_is_refused(world: World, what: str, name: str, fault: str, status: int, text: str) -> None:
    found, description = status_of(ask(world.trusted_peer(), "UPDATE", what, name, fault=fault))
    assert found == status
    assert text in description


ASKED = (("LIST", BROKER, ""), ("UPDATE", BROKER, "kill"), ("UPDATE", STORE, "away"))


@pytest.mark.parametrize(("operation", "what", "fault"), ASKED)
def test_a_supervisor_that_stalls_is_waited_for_half_a_minute(
    world: World, operation: str, what: str, fault: str
) -> None:
    supervisor = world.process.supervisor = Supervisor()
    supervisor.is_stalled = True
    peer = world.trusted_peer()
    asked = Asked(peer, operation, what, fault)
    peer.run(ANSWER_MS - 1_000)
    assert asked.answers == []
    peer.run(2_000)
    status, description = status_of(asked.answers[0])
    assert status == 408
    assert "hubweir broker list" in description
    for on_answer in supervisor.unanswered:  # it goes on
        on_answer(Done())
    peer.run(1_000)
    assert len(asked.answers) == 1


def test_no_more_requests_wait_than_a_link_may_have_unanswered_and_answers_make_room(world: World) -> None:
    supervisor = world.process.supervisor = Supervisor()
    supervisor.is_stalled = True
    peer, most = world.trusted_peer(), world.process.link_settings.request_credit
    reply, ask = peer.receiver("$management", credit=10 * most), peer.sender("$management")
    said = {"operation": "LIST", "type": BROKER, "name": ""}

    def send(**more: str) -> None:
        message = Message(properties=Properties(message_id="m"), application_properties=said | more)
        ask.send(encode_message(message), settled=True)

    def send_all() -> None:
        while ask.sendable and len(supervisor.asked) < 10 * most:
            send()
            peer.run(1)

    send(operation="NONE")  # it is refused at once, and all the others have come by then
    for _ in range(most - 1):
        send()
    peer.run(1)
    send_all()
    assert len(supervisor.unanswered) == most
    waiting, supervisor.unanswered = supervisor.unanswered, []
    for on_answer in waiting[:3]:
        on_answer(ProcessesTold(()))
    peer.run(1)
    send_all()
    assert len(supervisor.asked) == most + 3
    for on_answer in (*waiting[3:], *supervisor.unanswered):
        on_answer(ProcessesTold(()))
    peer.run(1)
    assert len(peer.received(reply)) == 1 + most + 3
    assert most // 2 < ask.credit <= most


@pytest.mark.parametrize(("operation", "what", "fault"), ASKED)
def test_what_a_supervisor_did_that_goes_before_it_answers_is_not_known(
    world: World, operation: str, what: str, fault: str
) -> None:
    supervisor = world.process.supervisor = Supervisor()
    supervisor.is_stalled = True
    peer = world.trusted_peer()
    asked = Asked(peer, operation, what, fault)
    for on_answer in supervisor.unanswered:
        on_answer(Refusal(TIMED_OUT, "the broker went away before it answered", known=False))
    peer.run()
    status, description = status_of(asked.answers[0])
    assert status == 408
    assert UNKNOWN in description


@pytest.mark.parametrize(("operation", "what", "fault"), ASKED)
def test_while_the_supervisor_is_away_nothing_is_ordered(world: World, operation: str, what: str, fault: str) -> None:
    supervisor = world.process.supervisor = Supervisor()
    supervisor.is_up = False
    status, description = status_of(ask(world.trusted_peer(), operation, what, "1", fault=fault))
    assert (status, supervisor.asked) == (503, [])
    assert AWAY in description


def test_only_who_may_manage_the_namespace_asks(world: World) -> None:
    for operation, what in (("LIST", BROKER), ("UPDATE", BROKER), ("UPDATE", STORE)):
        status, _ = status_of(ask(world.peer(), operation, what, "1", fault="kill"))
        assert status == 401
    assert world.process.supervisor.asked == []  # type: ignore[union-attr]


def test_a_namespace_of_a_tier_orders_no_faults_and_lists() -> None:
    world = World(settings=quotas(consumer_groups=1))
    world.process.supervisor = supervisor = Supervisor()
    peer = world.trusted_peer()
    for what, fault in ((BROKER, "kill"), (STORE, "away")):
        status, description = status_of(ask(peer, "UPDATE", what, "1", fault=fault))
        assert (status, supervisor.asked) == (403, []) or (status, supervisor.asked) == (400, [])
        assert "development profile alone" in description
    assert status_of(ask(peer, "LIST", BROKER, "")) == (200, "OK")


def test_a_service_of_one_process_says_so() -> None:
    status, description = status_of(ask(World().trusted_peer(), "LIST", BROKER, ""))
    assert status == 501
    assert "This service is one process" in description

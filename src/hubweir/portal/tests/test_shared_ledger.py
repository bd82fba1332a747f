"""Portals of two processes with one supervisor: what one saw holds at the other, and each works alone."""

from collections.abc import Callable

import pytest

from hubweir.alarms import Alarms
from hubweir.auth.lockout import FIRST_WAIT_MS, FREE_FAILURES
from hubweir.auth.sign_in_ledger import SignInLedger
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.counters import Counters
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.asked_orders import AskedOrders
from hubweir.portal.tests.browser import Browser, signed_in, text_of
from hubweir.service.supervisor_door import SupervisorDoor


class Supervisor:
    """The way to a supervisor's door. is_up: while it is not, nobody may ask."""

    def __init__(self, world: World) -> None:
        self.is_up = True
        self.asked: list[Command] = []
        self._door = SupervisorDoor(
            world.broker,
            lambda: (),
            self._measure,
            Alarms(world.env, Counters()),
            sign_ins=SignInLedger(world.env),
            orders=AskedOrders(world.broker),
        )

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        assert self.is_up, "nobody asks what is away"
        self.asked.append(command)
        self._door.submit(command, on_answer)

    def listen(self, on_push: Callable[[Push], None]) -> None:
        """It pushes nothing here."""

    async def _measure(self) -> bytes:
        raise AssertionError("nobody measures")


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 1})


@pytest.fixture
def supervisor(world: World) -> Supervisor:
    world.process.supervisor = supervisor = Supervisor(world)
    return supervisor


def test_who_fails_at_one_process_waits_at_the_other(world: World, supervisor: Supervisor) -> None:
    one, other = Browser(world), Browser(world)  # each with a portal of its own, as processes have
    for number in range(FREE_FAILURES):
        assert (one, other)[number % 2].sign_in("wrong").status == 401
    for browser in (one, other):
        refused = browser.sign_in()
        assert refused.status == 429 and "Wait 30 s" in text_of(refused)
    world.run_for(FIRST_WAIT_MS)
    assert other.sign_in().status == 303


def test_a_success_forgives_no_failure_at_another_process(world: World, supervisor: Supervisor) -> None:
    one, other = Browser(world), Browser(world)
    for _ in range(FREE_FAILURES - 1):
        assert one.sign_in("wrong").status == 401 and other.sign_in().status == 303
    assert one.sign_in("wrong").status == 401 and other.sign_in().status == 429


def test_a_copy_of_a_cookie_is_worthless_everywhere_once_somebody_signed_out(
    world: World, supervisor: Supervisor
) -> None:
    one, other = signed_in(world), Browser(world)
    other.cookie = one.cookie
    assert other.get("event-hubs").status == 200
    one.post("sign-out", {})
    assert other.get("event-hubs").status == 303
    assert all(one.nonce not in str(command) for command in supervisor.asked)


def test_while_the_supervisor_is_away_each_process_goes_by_what_it_saw(world: World, supervisor: Supervisor) -> None:
    supervisor.is_up = False
    browser = signed_in(world)
    copy = browser.cookie
    assert browser.get("event-hubs").status == 200
    browser.post("sign-out", {})
    browser.cookie = copy
    assert browser.get("event-hubs").status == 303
    for _ in range(FREE_FAILURES):
        assert browser.sign_in("wrong").status == 401
    assert browser.sign_in().status == 429


def test_a_try_that_the_supervisor_refuses_counts_nowhere(world: World, supervisor: Supervisor) -> None:
    """Who had to wait because of what another process saw is as before where that process is not asked."""
    one, other = Browser(world), Browser(world)
    for _ in range(FREE_FAILURES):
        assert one.sign_in("wrong").status == 401
    for _ in range(FREE_FAILURES + 1):
        assert other.sign_in().status == 429
    supervisor.is_up = False
    assert one.sign_in().status == 429, "control: it saw the failures itself"
    assert other.sign_in().status == 303

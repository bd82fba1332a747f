"""Runs that what is lent does not let in: each waits its turn, asks with others, and is let in or refused once."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.keeper import LeaseUnits, UnitsLent
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import Refusal
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE, TIMED_OUT
from hubweir.gateway.keeper.followed_namespace import FollowedNamespace
from hubweir.gateway.keeper.lent_units import ASK_GAP_MS, LATE_MS, LentUnits
from hubweir.limits import UnitsLimits
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import DescribeNamespace
from hubweir.namespace.followed_catalog import FollowedCatalog
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.tiers import DEVELOPMENT
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.throughput_unit.rate_limit import Amount
from hubweir.throughput_unit.unit_lender import LEASE_MS


class Asked:
    """Units whose leases a test answers. stored: the events of the runs that reached the broker, in order."""

    owner = Owner(101, -1)

    def __init__(self) -> None:
        self.env = SimulatedEnv()
        self.is_up = True
        self.asked: list[tuple[LeaseUnits, Callable[[Answer], None]]] = []
        self.stored: list[int] = []
        self.refused: list[int] = []
        catalog = Catalog()
        catalog.apply(DescribeNamespace(NamespaceDescription("shop", units=UnitsDescription(held=1))))
        followed = FollowedCatalog(profile=DEVELOPMENT, host="shop")
        followed.restore(catalog.snapshot())
        self.units = LentUnits(
            self.env,
            FollowedNamespace(self, "shop", followed),
            limits=UnitsLimits(),
            connections=lambda: 0,
            has_connection_quota=False,
            processes=2,
        )

    def is_following(self, name: str) -> bool:
        return self.is_up

    def submit(self, command: Any, on_answer: Callable[[Answer], None]) -> None:
        """As the link to the keeper, and as the broker."""
        if isinstance(command, AppendEvents):
            self.stored.append(command.events)
        elif self.is_up:
            self.asked.append((command, on_answer))
        else:
            on_answer(Refusal(STORE_OFFLINE, "away"))

    change = submit

    def append(self, events: int) -> None:
        def answered(answer: Answer) -> None:
            assert isinstance(answer, Refusal) and answer.condition is SERVER_BUSY and answer.known
            self.refused.append(events)

        pending: Any = SimpleNamespace(units=None, admitted=None, answered=answered)
        self.units.append(self, AppendEvents("log", bytearray(), events, 0), pending)

    def lend(self, events: int) -> None:
        """Answer the lease that was asked for last."""
        _, on_answer = self.asked[-1]
        on_answer(UnitsLent(Amount(10**6, events), Amount(), 0))


def test_a_run_that_would_fit_waits_behind_one_that_does_not() -> None:
    asked = Asked()
    asked.append(1)
    asked.lend(6)
    asked.append(10)
    asked.append(2)
    assert asked.stored == [1] and len(asked.asked) == 1
    asked.env.run_for(ASK_GAP_MS)
    command, _ = asked.asked[-1]
    assert (command.asked_in.short.events, command.asked_in.first.events) == (12, 10)
    assert command.asked_in.unused.events == 5
    asked.lend(12)
    assert asked.stored == [1, 10, 2] and asked.refused == []


def test_a_run_that_came_while_a_lease_was_on_its_way_has_one_asked_for_too() -> None:
    asked = Asked()
    asked.append(10)
    asked.append(7)
    asked.lend(10)
    assert (asked.stored, asked.refused) == ([10], [])
    asked.env.run_for(ASK_GAP_MS)
    assert asked.asked[-1][0].asked_in.short.events == 7
    asked.lend(7)
    assert (asked.stored, asked.refused) == ([10, 7], [])


def test_what_a_lease_that_was_asked_for_does_not_let_in_is_refused_and_the_next_at_once_for_a_while() -> None:
    asked = Asked()
    asked.append(10)
    asked.lend(9)
    assert (asked.stored, asked.refused) == ([], [10])
    asked.append(10)
    assert asked.refused == [10, 10] and len(asked.asked) == 1
    asked.append(9)
    assert asked.stored == [9]  # what is lent is used
    asked.env.run_for(LEASE_MS)
    asks = len(asked.asked)
    asked.lend(0)  # the lease of the tick
    asked.append(3)
    asked.env.run_for(ASK_GAP_MS)
    assert len(asked.asked) == asks + 1 and asked.refused == [10, 10]


def test_leases_are_asked_for_with_a_gap_between() -> None:
    asked = Asked()
    asked.append(1)
    asked.lend(1)
    asked.append(1)
    asked.env.run_for(ASK_GAP_MS - 1)
    assert len(asked.asked) == 1
    asked.env.run_for(1)
    assert len(asked.asked) == 2


def test_runs_that_wait_to_ask_go_by_their_own_part_when_the_keeper_is_away() -> None:
    asked = Asked()
    asked.append(1)
    asked.lend(1)
    asked.append(400)
    asked.is_up = False
    asked.append(101)
    asked.env.run_for(ASK_GAP_MS)
    assert (asked.stored, asked.refused) == ([1, 400], [101])  # two processes: 500 each


def test_runs_that_wait_for_a_keeper_that_stalls_go_by_their_own_part_after_a_while() -> None:
    asked = Asked()
    asked.append(1)
    asked.lend(1)
    asked.append(400)
    asked.append(101)
    asked.env.run_for(ASK_GAP_MS + LATE_MS - 1)
    asks = len(asked.asked)
    assert (asked.stored, asked.refused) == ([1], [])
    asked.env.run_for(1)
    assert (asked.stored, asked.refused) == ([1, 400], [101])  # two processes: 500 each
    asked.env.run_for(10 * LATE_MS)
    asked.append(500)
    asked.append(300)
    assert (asked.stored, asked.refused) == ([1, 400, 500], [101, 300])
    assert len(asked.asked) == asks, "a keeper that does not answer is asked once"


def test_the_lease_of_a_keeper_that_stalled_holds_as_any_other() -> None:
    asked = Asked()
    asked.append(10)
    asked.env.run_for(LATE_MS)
    assert asked.stored == [10]
    asked.lend(20)
    asked.append(30)
    assert asked.stored == [10], "its own part is no more"
    asked.env.run_for(ASK_GAP_MS)
    asked.lend(30)
    assert (asked.stored, asked.refused) == ([10, 30], [])
    asked.env.run_for(LATE_MS - 1)
    asked.lend(0)
    asked.env.run_for(2)
    asked.append(5)
    assert asked.stored == [10, 30], "no lease is late before its own time"


def test_counts_are_told_again_unless_they_may_have_been_heard() -> None:
    asked = Asked()
    asked.append(5)
    asked.lend(5)
    asked.env.run_for(LEASE_MS)
    command, on_answer = asked.asked[-1]
    assert command.moved.events_in == 5
    asks = len(asked.asked)
    on_answer(Refusal(STORE_OFFLINE, "not now"))
    asked.env.run_for(LEASE_MS)
    command, on_answer = asked.asked[-1]
    assert len(asked.asked) == asks + 1 and command.moved.events_in == 5
    on_answer(Refusal(TIMED_OUT, "nobody knows", known=False))
    asks = len(asked.asked)
    asked.env.run_for(3 * LEASE_MS)
    assert len(asked.asked) == asks


def test_runs_that_wait_when_the_process_stops_are_answered() -> None:
    asked = Asked()
    asked.append(1)
    asked.lend(1)
    asked.append(3)
    asked.append(4)
    stopped: list[object] = []
    asked.units.stop(stopped.append)
    assert stopped == []
    asked.lend(3)
    assert (asked.stored, asked.refused, len(stopped)) == ([1, 3], [4], 1)
    asks = len(asked.asked)
    asked.env.run_for(10 * LEASE_MS)
    assert len(asked.asked) == asks


def test_a_process_that_stops_waits_for_a_keeper_that_stalls_no_longer_than_runs_do() -> None:
    asked = Asked()
    asked.append(3)
    stopped: list[object] = []
    asked.units.stop(stopped.append)
    asked.env.run_for(LATE_MS - 1)
    assert stopped == []
    asked.env.run_for(1)
    assert (asked.stored, len(stopped)) == ([3], 1)
    asked.lend(3)
    asked.env.run_for(2 * LATE_MS)
    assert (asked.stored, len(stopped)) == ([3], 1)

"""What a process takes in and hands out by what it was lent: all of that, nothing more, and counted."""

from __future__ import annotations

import pytest

from hubweir.errors import SERVER_BUSY
from hubweir.throughput_unit.admission import Admitted, Busy
from hubweir.throughput_unit.lent_admission import LentAdmission
from hubweir.throughput_unit.rate_limit import Amount
from hubweir.throughput_unit.unit_lender import LEASE_MS, LeaseAsked
from hubweir.throughput_unit.usage import MovedCounts

NOTHING = Amount()


def lent(in_: Amount = NOTHING, out: Amount = NOTHING, *, units: int | None = 1, processes: int = 2) -> LentAdmission:
    admission = LentAdmission("contoso", units=units, processes=processes, now_ms=0)
    admission.lend((in_, out), 0)
    return admission


def is_admitted(answer: Admitted | Busy) -> bool:
    return isinstance(answer, Admitted)


def test_what_was_lent_is_used_to_the_last_event_and_byte() -> None:
    admission = lent(Amount(1_000, 10))
    assert is_admitted(admission.admit(900, 4, 1))
    assert not is_admitted(admission.admit(101, 1, 1))
    assert not is_admitted(admission.admit(1, 7, 1))
    assert is_admitted(admission.admit(100, 6, 1))
    assert not is_admitted(admission.admit(0, 1, 1))


def test_nothing_is_used_when_the_lease_is_over_and_what_was_left_is_given_back() -> None:
    admission = lent(Amount(1_000, 10), Amount(500, 5))
    assert is_admitted(admission.admit(100, 1, LEASE_MS - 1))
    assert not is_admitted(admission.admit(100, 1, LEASE_MS))
    asked_in, asked_out = admission.ask(NOTHING, NOTHING, LEASE_MS + 50)
    assert asked_in == LeaseAsked(unused=Amount(900, 9), wanted=Amount(100, 1))
    assert asked_out == LeaseAsked(unused=Amount(500, 5))
    assert admission.ask(NOTHING, NOTHING, LEASE_MS + 60) == (LeaseAsked(), LeaseAsked())  # once


def test_what_was_left_of_a_lease_long_over_is_not_given_back() -> None:
    """The bucket has filled up meanwhile: it would be used twice."""
    admission = lent(Amount(1_000, 10))
    assert admission.ask(NOTHING, NOTHING, 2 * LEASE_MS)[0].unused == NOTHING
    admission = lent(Amount(1_000, 10))
    assert admission.ask(NOTHING, NOTHING, 2 * LEASE_MS - 1)[0].unused == Amount(1_000, 10)


def test_nothing_is_admitted_while_another_lease_is_asked_for() -> None:
    admission = lent(Amount(1_000, 10))
    assert admission.ask(NOTHING, NOTHING, 10)[0].unused == Amount(1_000, 10)
    assert not is_admitted(admission.admit(1, 1, 11))
    admission.lend((Amount(50, 1), NOTHING), 12)
    assert is_admitted(admission.admit(50, 1, 12))


def test_the_next_lease_is_to_bring_what_was_used_refused_or_waits() -> None:
    admission = lent(Amount(1_000, 10))
    admission.admit(300, 3, 1)
    admission.refuse(200, 2)
    asked_in, _ = admission.ask(Amount(400, 20), Amount(100, 5), 2)
    assert asked_in == LeaseAsked(
        unused=Amount(700, 7), wanted=Amount(500, 20), short=Amount(400, 20), first=Amount(100, 5)
    )


def test_what_was_not_stored_is_given_back() -> None:
    admission = lent(Amount(100, 1))
    admitted = admission.admit(100, 1, 1)
    assert isinstance(admitted, Admitted)
    admission.give_back(admitted, 2, busy=True)
    assert is_admitted(admission.admit(100, 1, 3))
    assert admission.take_counts() == MovedCounts(bytes_in=100, events_in=1, refusals=1, refused_events=1)
    # Nobody wants twice what was sent twice and stored once.
    assert admission.ask(NOTHING, NOTHING, 4)[0].wanted == Amount(100, 1)


def test_what_goes_out_beyond_what_was_lent_is_a_debt_that_the_next_lease_is_to_bring() -> None:
    admission = lent(out=Amount(2_097_152, 100))
    assert admission.reserve_egress(1_048_576, 50, 1).delay_ms == 0
    paced = admission.reserve_egress(2_097_152, 50, 1)
    assert paced.delay_ms == 500  # half a second of one unit
    _, asked_out = admission.ask(NOTHING, NOTHING, 10)
    assert asked_out.short == Amount(1_048_576, 0)
    assert asked_out.wanted == Amount(3_145_728, 100) and asked_out.unused == NOTHING
    admission.lend((NOTHING, Amount(1_048_576, 0)), 20)
    assert admission.reserve_egress(0, 0, 20).delay_ms == 0
    admission.give_back_unsent(paced, 1_000, 1, 21)
    assert admission.reserve_egress(1_000, 1, 22).delay_ms == 0


def test_a_debt_stays_when_the_lease_is_over() -> None:
    admission = lent(out=Amount(100, 1_000))
    admission.reserve_egress(2_097_252, 1, 1)
    assert admission.reserve_egress(0, 0, LEASE_MS + 1).delay_ms == 1_000
    assert admission.ask(NOTHING, NOTHING, LEASE_MS + 2)[1].unused == Amount(0, 999)


def test_without_units_nothing_is_limited_and_everything_counted() -> None:
    admission = lent(units=None)
    assert is_admitted(admission.admit(10**9, 10**6, 1))
    assert admission.reserve_egress(10**9, 10**6, 1).delay_ms == 0
    counts = admission.take_counts()
    assert counts == MovedCounts(10**9, 10**6, 10**9, 10**6)
    assert not admission.has_moved and admission.take_counts() == MovedCounts()


def test_counts_that_could_not_be_told_are_told_with_the_next() -> None:
    admission = lent(units=None)
    admission.admit(10, 1, 1)
    counts = admission.take_counts()
    admission.admit(5, 1, 2)
    admission.count_again(counts)
    assert admission.take_counts() == MovedCounts(15, 2)


def test_corrections_of_what_was_told_are_negative() -> None:
    admission = lent(units=None)
    admitted = admission.admit(10, 1, 1)
    assert isinstance(admitted, Admitted)
    paced = admission.reserve_egress(100, 2, 1)
    admission.take_counts()
    admission.give_back(admitted, 2)
    admission.give_back_unsent(paced, 50, 1, 2)
    assert admission.take_counts() == MovedCounts(-10, -1, -50, -1)


@pytest.mark.parametrize("processes", [1, 4])
def test_a_process_that_no_keeper_has_lent_anything_yet_has_its_part_of_the_units(processes: int) -> None:
    admission = LentAdmission("contoso", units=2, processes=processes, now_ms=0)
    admission.go_on_alone(0, is_alone=True)
    assert is_admitted(admission.admit(2 * 1_048_576 // processes, 2_000 // processes, 0))
    assert not is_admitted(admission.admit(0, 1, 0)) and not is_admitted(admission.admit(1, 0, 0))


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_without_a_keeper_each_goes_on_with_its_part_of_the_units(processes: int) -> None:
    admission = lent(units=2, processes=processes)
    admission.go_on_alone(0, is_alone=True)
    part = 2_000 // processes
    assert is_admitted(admission.admit(0, part, 0))
    assert not is_admitted(admission.admit(0, 1, 0))
    admission.go_on_alone(500, is_alone=True)  # the same state again: nothing begins anew
    assert is_admitted(admission.admit(0, part // 2, 500))
    assert not is_admitted(admission.admit(0, 1, 500))
    assert admission.reserve_egress(0, 2 * 4_096 // processes + 1, 500).delay_ms > 0
    admission.go_on_alone(600, is_alone=False)
    assert not is_admitted(admission.admit(0, 1, 600))
    admission.lend((Amount(0, 1), NOTHING), 600)
    assert is_admitted(admission.admit(0, 1, 600))


def test_other_units_begin_with_what_is_lent_of_them() -> None:
    admission = lent(Amount(1_000, 10))
    admission.set_units(5, 1)
    assert not is_admitted(admission.admit(1, 1, 1))
    admission.set_units(None, 2)
    assert is_admitted(admission.admit(1, 1, 2))
    admission.go_on_alone(3, is_alone=True)
    admission.set_units(1, 4)
    assert is_admitted(admission.admit(0, 500, 4))
    assert not is_admitted(admission.admit(0, 1, 4))


def test_the_refusal_names_the_namespace_its_units_and_the_wait() -> None:
    admission = lent()
    busy = admission.admit(1, 11, 1)
    assert isinstance(busy, Busy)
    error = admission.busy_error(busy)
    assert error.condition is SERVER_BUSY
    assert "'contoso' is over its throughput units (1: 1048576 bytes or 1000" in error.text and "wait 4" in error.text

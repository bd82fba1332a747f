"""One namespace: ingress and egress shared by its hubs, changed and inflated while running."""

import random

import pytest

from hubweir.errors import SERVER_BUSY
from hubweir.throughput_unit.admission import Admitted, Busy, NamespaceAdmission, Paced, retry_after_s
from hubweir.throughput_unit.auto_inflate import Cause, UnitsRaised
from hubweir.throughput_unit.usage import HOUR_MS, Usage

WALL = 490_000 * HOUR_MS


def a_namespace(
    units: int | None, maximum_units: int | None = None, cls: type[NamespaceAdmission] = NamespaceAdmission
) -> NamespaceAdmission:
    return cls("contoso", Usage(now_ms=0, wall_ms=WALL), now_ms=0, units=units, maximum_units=maximum_units)


def admitted_events(namespace: NamespaceAdmission, now_ms: int, *, sizes: list[int]) -> int:
    """Send runs of these numbers of events; return how many events were let in."""
    return sum(size for size in sizes if isinstance(namespace.admit(size * 10, size, now_ms), Admitted))


def check_ingress_is_exact(cls: type[NamespaceAdmission]) -> None:
    """Three hubs send more than two units carry, one event at a time, at odd moments: exactly two units get in."""
    namespace, odd, now_ms, last_ms = a_namespace(2, cls=cls), random.Random(11), 0, -1_000
    by_hub = [0, 0, 0]
    refusals = 0
    while now_ms < 60_000:
        # As much as could have come in since, and three more, so that there is always a refusal.
        for turn in range((now_ms - last_ms) * 2 + 3):
            if isinstance(namespace.admit(100, 1, now_ms), Admitted):
                by_hub[turn % 3] += 1
            else:
                refusals += 1
        last_ms = now_ms
        now_ms += odd.choice([1, 3, 17, 83, 251])
    assert sum(by_hub) == 2_000 + 2_000 * last_ms // 1_000
    assert min(by_hub) > sum(by_hub) // 4
    total = namespace.usage.bill(WALL, WALL + HOUR_MS, last_ms).total
    assert (total.events_in, total.refusals) == (sum(by_hub), refusals)


class StoresRefused(NamespaceAdmission):
    """Defect: one refused run in a hundred gets in."""

    def admit(self, size_bytes: int, events: int, now_ms: int) -> Admitted | Busy:
        answer = super().admit(size_bytes, events, now_ms)
        if isinstance(answer, Busy) and self.usage.row(now_ms).refusals % 100 == 0:
            return Admitted(size_bytes, events, 0)
        return answer


def test_hubs_share_the_units_to_one_event() -> None:
    check_ingress_is_exact(NamespaceAdmission)
    with pytest.raises(AssertionError):
        check_ingress_is_exact(StoresRefused)


def test_bytes_are_shared_to_one_byte() -> None:
    namespace = a_namespace(1)
    assert isinstance(namespace.admit(1_048_575, 1, 0), Admitted)
    assert namespace.admit(2, 1, 0) == Busy(1)
    assert isinstance(namespace.admit(1, 1, 0), Admitted)
    assert namespace.admit(1, 1, 0) == Busy(1)


def test_a_run_is_admitted_whole_or_not_at_all() -> None:
    namespace = a_namespace(1)
    assert isinstance(namespace.admit(100, 700, 0), Admitted)
    assert namespace.admit(100, 301, 0) == Busy(1)
    assert isinstance(namespace.admit(1_048_476, 300, 0), Admitted)
    assert namespace.admit(1, 0, 0) == namespace.admit(0, 1, 0) == Busy(1)


def test_the_retry_hint_is_when_it_fits() -> None:
    namespace = a_namespace(1)
    assert isinstance(namespace.admit(100, 1_000, 0), Admitted)
    answer = namespace.admit(100, 640, 7)
    assert answer == Busy(633)
    assert isinstance(namespace.admit(100, 640, 7 + 633 - 1), Busy)
    assert isinstance(namespace.admit(100, 640, 7 + 633), Admitted)


def test_the_refusal_reads_as_clients_know_it() -> None:
    error = a_namespace(2).busy_error(Busy(120))
    assert error.condition is SERVER_BUSY
    assert "Namespace 'contoso' is over its throughput units (2: 2097152 bytes or 2000 events a second" in error.text
    assert "50002" in error.text and "wait 4 seconds" in error.text
    assert [retry_after_s(Busy(ms)) for ms in (1, 4_000, 4_001, 9_500)] == [4, 4, 5, 10]


def test_what_was_not_stored_is_given_back_to_the_hour_it_came_in() -> None:
    namespace = a_namespace(1)
    late = HOUR_MS - 1
    admitted = namespace.admit(500, 1_000, late)
    assert isinstance(admitted, Admitted)
    namespace.give_back(admitted, HOUR_MS)
    hours = namespace.usage.hours(HOUR_MS)
    assert [(row.bytes_in, row.events_in, row.refusals) for row in hours] == [(0, 0, 0), (0, 0, 0)]
    assert isinstance(namespace.admit(1_048_576, 1_000, HOUR_MS), Admitted)


def test_egress_is_paced_in_turn_and_never_refused() -> None:
    """Two readers of two hubs, each asks for its next run when its last is sent."""
    namespace = a_namespace(1)
    due = [(0, reader) for reader in range(2)]
    sent = [0, 0]
    while due:
        now_ms, reader = due.pop(0)
        due_ms = now_ms + namespace.reserve_egress(50_000, 500, now_ms).delay_ms
        if due_ms < 30_000:
            sent[reader] += 500
            due = sorted([*due, (due_ms, reader)], key=lambda one: one[0])
    assert 4_096 * 31 - 500 <= sum(sent) <= 4_096 * 31
    assert abs(sent[0] - sent[1]) <= 500


def test_egress_is_exact_to_one_event() -> None:
    namespace, now_ms, sent = a_namespace(1), 0, 0
    while now_ms < 20_000:
        now_ms += namespace.reserve_egress(10, 1, now_ms).delay_ms
        sent += now_ms < 20_000
    # At 19,999 ms the last whole event has come in; the next one is due at 20,000.
    assert sent == 4_096 + 4_096 * 19_999 // 1_000


def test_what_a_consumer_did_not_take_goes_back() -> None:
    namespace = a_namespace(1)
    assert namespace.reserve_egress(0, 4_000, 0).delay_ms == 0
    paced = namespace.reserve_egress(100, 505, 0)
    assert paced.delay_ms == 100
    namespace.give_back_unsent(paced, 60, 409, 0)
    assert namespace.reserve_egress(2_097_112, 0, 0).delay_ms == 0
    assert namespace.reserve_egress(0, 1, 0).delay_ms == namespace.reserve_egress(1, 0, 0).delay_ms == 1
    row = namespace.usage.row(0)
    assert (row.bytes_out, row.events_out, row.delays) == (2_097_153, 4_097, 3)


def test_what_was_reserved_in_one_hour_and_not_sent_in_the_next_leaves_the_first() -> None:
    namespace = a_namespace(1)
    paced = namespace.reserve_egress(1_000, 10, HOUR_MS - 1)
    namespace.give_back_unsent(paced, 400, 4, HOUR_MS)
    assert [(row.bytes_out, row.events_out) for row in namespace.usage.hours(HOUR_MS)] == [(600, 6), (0, 0)]


def test_ingress_and_egress_do_not_touch_each_other() -> None:
    namespace = a_namespace(1)
    assert isinstance(namespace.admit(1_048_576, 1_000, 0), Admitted)
    assert namespace.reserve_egress(2_097_152, 4_096, 0).delay_ms == 0


def test_without_units_everything_passes_and_is_counted() -> None:
    namespace = a_namespace(None, maximum_units=5)
    assert isinstance(namespace.admit(10**9, 10**7, 0), Admitted)
    assert namespace.reserve_egress(10**9, 10**7, 0) == Paced(0, WALL)
    assert namespace.units is None
    row = namespace.usage.row(0)
    assert (row.units, row.events_in, row.events_out) == (0, 10**7, 10**7)


def test_units_change_while_running() -> None:
    namespace = a_namespace(1)
    assert admitted_events(namespace, 0, sizes=[1] * 1_500) == 1_000
    namespace.set_units(3, 0)
    assert admitted_events(namespace, 0, sizes=[1] * 5_000) == 2_000, "added units come with their burst"
    assert admitted_events(namespace, 100, sizes=[1] * 5_000) == 300
    namespace.set_units(1, 150)
    assert admitted_events(namespace, 150, sizes=[1] * 5_000) == 150, "up to the change the old rate counts"
    assert admitted_events(namespace, 250, sizes=[1] * 5_000) == 100
    assert namespace.usage.row(250).units == 3


def test_units_go_off_and_on_and_what_was_taken_before_stays_out() -> None:
    namespace = a_namespace(1)
    before = namespace.admit(100, 1_000, 0)
    assert isinstance(before, Admitted)
    namespace.set_units(None, 0)
    between = namespace.admit(100, 50_000, 0)
    assert isinstance(between, Admitted)
    namespace.set_units(1, 0)
    assert admitted_events(namespace, 0, sizes=[1] * 1_500) == 1_000
    namespace.give_back(before, 0)
    namespace.give_back(between, 0)
    assert namespace.usage.row(0).events_in == 1_000
    assert namespace.admit(0, 1, 0) == Busy(1)


def check_inflates_before_refusing(cls: type[NamespaceAdmission]) -> None:
    """3,500 events a second for 20 s on one unit that may become ten: no send is refused."""
    namespace = a_namespace(1, maximum_units=10, cls=cls)
    for now_ms in range(0, 20_000, 10):
        assert isinstance(namespace.admit(3_500, 35, now_ms), Admitted)
    assert namespace.units == 4
    raised = namespace.take_raised()
    assert [(step.before, step.after, step.cause) for step in raised] == [
        (1, 2, Cause.INGRESS),
        (2, 3, Cause.INGRESS),
        (3, 4, Cause.INGRESS),
    ]
    assert namespace.take_raised() == []
    row = namespace.usage.row(20_000)
    assert (row.units, row.inflations, row.refusals) == (4, 3, 0)


class InflatesLate(NamespaceAdmission):
    """Defect: the refusal goes out first, the units come for the next send."""

    def admit(self, size_bytes: int, events: int, now_ms: int) -> Admitted | Busy:
        maximum, self.maximum_units = self.maximum_units, None
        answer = super().admit(size_bytes, events, now_ms)
        self.maximum_units = maximum
        if isinstance(answer, Busy) and self.units is not None:
            self.set_units(self.units + 1, now_ms)
        return answer


def test_auto_inflate_adds_units_before_the_first_refusal() -> None:
    check_inflates_before_refusing(NamespaceAdmission)
    with pytest.raises(AssertionError):
        check_inflates_before_refusing(InflatesLate)


def test_auto_inflate_adds_what_one_large_run_needs_at_once() -> None:
    namespace = a_namespace(1, maximum_units=10)
    assert isinstance(namespace.admit(1_000, 1_000, 0), Admitted)
    assert isinstance(namespace.admit(1_000, 2_500, 5), Admitted)
    assert namespace.take_raised() == [UnitsRaised(1, 4, Cause.INGRESS, 5)]


def test_auto_inflate_stops_at_its_maximum_and_then_sends_are_refused() -> None:
    namespace = a_namespace(1, maximum_units=2)
    assert admitted_events(namespace, 0, sizes=[1] * 5_000) == 2_000
    assert (namespace.units, namespace.usage.row(0).refusals) == (2, 3_000)


def test_auto_inflate_adds_units_before_a_consumer_waits() -> None:
    namespace = a_namespace(1, maximum_units=3)
    delays = [namespace.reserve_egress(1_000_000, 100, 0).delay_ms for _ in range(7)]
    assert delays[:6] == [0] * 6
    assert delays[6] == 113  # 7,000,000 bytes on three units: 6,291,456 at once, then 6,291.456 a ms
    assert namespace.take_raised() == [UnitsRaised(1, 2, Cause.EGRESS, 0), UnitsRaised(2, 3, Cause.EGRESS, 0)]
    assert namespace.usage.row(0).delays == 1


def test_auto_inflate_adds_what_one_large_read_needs_at_once() -> None:
    namespace = a_namespace(1, maximum_units=5)
    assert namespace.reserve_egress(1_000, 10_000, 0).delay_ms == 0
    assert namespace.take_raised() == [UnitsRaised(1, 3, Cause.EGRESS, 0)]


def test_auto_inflate_can_be_turned_on_and_off_while_running() -> None:
    namespace = a_namespace(1)
    assert admitted_events(namespace, 0, sizes=[1_000, 1]) == 1_000
    namespace.maximum_units = 2
    assert admitted_events(namespace, 0, sizes=[1]) == 1
    namespace.maximum_units = None
    assert admitted_events(namespace, 0, sizes=[999, 1]) == 999
    assert namespace.units == 2


def test_an_hour_turns_while_events_come_in() -> None:
    namespace = a_namespace(2)
    assert isinstance(namespace.admit(10, 1, HOUR_MS - 1), Admitted)
    assert isinstance(namespace.admit(20, 2, HOUR_MS), Admitted)
    namespace.set_units(1, HOUR_MS + 5)
    assert namespace.reserve_egress(30, 3, 2 * HOUR_MS).delay_ms == 0
    assert [(row.units, row.events_in, row.events_out) for row in namespace.usage.hours(2 * HOUR_MS)] == [
        (2, 1, 0),
        (2, 2, 0),
        (1, 0, 3),
    ]


def test_a_clock_set_back_gives_nothing_and_stops_nothing() -> None:
    namespace = a_namespace(1)
    assert admitted_events(namespace, 10_000, sizes=[1] * 1_100) == 1_000
    assert admitted_events(namespace, 9_999, sizes=[1] * 10) == 0
    assert admitted_events(namespace, 10_000, sizes=[1] * 10) == 0
    assert admitted_events(namespace, 0, sizes=[1] * 10) == 0
    assert admitted_events(namespace, 5, sizes=[1] * 10) == 5

"""One partition carries one unit, whatever its namespace holds."""

from hubweir.errors import SERVER_BUSY
from hubweir.throughput_unit.admission import Admitted, Busy, NamespaceAdmission
from hubweir.throughput_unit.partition_cap import PartitionCap, partition_busy_error
from hubweir.throughput_unit.usage import Usage


def test_a_partition_takes_one_unit_in_and_hands_one_out() -> None:
    cap = PartitionCap(now_ms=0)
    assert cap.admit(1_000_000, 1_000, 0) is None
    assert cap.admit(1, 1, 0) == Busy(1)
    assert cap.admit(1_048_576, 1, 0) == Busy(954)
    assert cap.reserve_egress(2_097_152, 4_096, 0) == 0
    assert cap.reserve_egress(0, 4_096, 0) == 1_000
    cap.give_back_unsent(0, 4_096, 0)
    assert cap.reserve_egress(0, 1, 0) == 1
    cap.give_back(1_000_000, 1_000, 0)
    assert cap.admit(1_048_576, 1_000, 0) is None


def test_a_refusal_at_the_partition_gives_the_namespaces_units_back_and_is_counted_once() -> None:
    namespace = NamespaceAdmission("contoso", Usage(now_ms=0, wall_ms=0), now_ms=0, units=4, maximum_units=8)
    cap = PartitionCap(now_ms=0)
    stored = 0
    for _ in range(10):
        admitted = namespace.admit(1_000, 400, 0)
        assert isinstance(admitted, Admitted)
        if cap.admit(1_000, 400, 0) is None:
            stored += 400
        else:
            namespace.give_back(admitted, 0, busy=True)
    assert stored == 800
    assert namespace.units == 4
    row = namespace.usage.row(0)
    assert (row.events_in, row.bytes_in, row.refusals, row.refused_events) == (800, 2_000, 8, 3_200)
    assert isinstance(namespace.admit(0, 4_000 - 800, 0), Admitted)


def test_the_refusal_names_the_partition_and_the_way_out() -> None:
    error = partition_busy_error("telemetry", "3", Busy(954))
    assert error.condition is SERVER_BUSY
    assert "Partition '3' of event hub 'telemetry' carries at most one throughput unit" in error.text
    assert "50002" in error.text and "wait 4 seconds" in error.text

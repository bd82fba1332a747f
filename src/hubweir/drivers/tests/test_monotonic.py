from hubweir.drivers.monotonic import monotonic_ms


def test_the_clock_does_not_run_back() -> None:
    readings = [monotonic_ms() for _ in range(1000)]
    assert readings == sorted(readings)
    assert readings[0] > 0

from hubweir.portal.lockout import FIRST_WAIT_MS, FREE_FAILURES, LAST_WAIT_MS, PEERS_LIMIT, Lockout


def fail(lockout: Lockout, peer: str, times: int, now_ms: int = 0) -> None:
    for _ in range(times):
        lockout.failed(peer, now_ms)


def test_the_first_failures_are_free_and_then_each_doubles_the_wait() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES - 1)
    assert lockout.wait_ms("10.0.0.1", 0) == 0
    waits = []
    for _ in range(8):
        lockout.failed("10.0.0.1", 0)
        waits.append(lockout.wait_ms("10.0.0.1", 0))
    assert waits == [30_000, 60_000, 120_000, 240_000, 480_000, LAST_WAIT_MS, LAST_WAIT_MS, LAST_WAIT_MS]


def test_a_wait_ends_and_a_quiet_time_forgets_failures() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES, now_ms=1_000)
    assert lockout.wait_ms("10.0.0.1", 1_000 + FIRST_WAIT_MS - 1) == 1
    assert lockout.wait_ms("10.0.0.1", 1_000 + FIRST_WAIT_MS) == 0
    lockout.failed("10.0.0.1", 1_000 + FIRST_WAIT_MS + LAST_WAIT_MS + 1)
    assert lockout.wait_ms("10.0.0.1", 1_000 + FIRST_WAIT_MS + LAST_WAIT_MS + 1) == 0


def test_failures_within_the_quiet_time_go_on_counting() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES)
    later_ms = FIRST_WAIT_MS + LAST_WAIT_MS
    lockout.failed("10.0.0.1", later_ms)
    assert lockout.wait_ms("10.0.0.1", later_ms) == 2 * FIRST_WAIT_MS


def test_one_peer_does_not_wait_for_another() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES)
    assert lockout.wait_ms("10.0.0.2", 0) == 0 and lockout.wait_ms("10.0.0.1", 0) == FIRST_WAIT_MS


def test_a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_its_ipv4_address() -> None:
    lockout = Lockout()
    fail(lockout, "2001:db8::1", FREE_FAILURES)
    assert lockout.wait_ms("2001:db8::ffff:2%eth0", 0) == FIRST_WAIT_MS
    assert lockout.wait_ms("2001:db8:0:1::1", 0) == 0
    fail(lockout, "::ffff:10.0.0.1", FREE_FAILURES)
    assert lockout.wait_ms("10.0.0.1", 0) == FIRST_WAIT_MS


def test_the_table_forgets_the_oldest_failure_first() -> None:
    lockout = Lockout()
    fail(lockout, "10.9.9.9", FREE_FAILURES)
    for number in range(PEERS_LIMIT):
        lockout.failed(f"peer {number}", 1)
    assert len(lockout) == PEERS_LIMIT
    assert lockout.wait_ms("10.9.9.9", 1) == 0

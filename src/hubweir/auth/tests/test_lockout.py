from hubweir.auth.lockout import FIRST_WAIT_MS, FREE_FAILURES, LAST_WAIT_MS, PEERS_LIMIT, Lockout


def fail(lockout: Lockout, peer: str, times: int, now_ms: int = 0) -> None:
    for _ in range(times):
        assert lockout.try_now(peer, now_ms) == 0


def test_the_first_failures_are_free_and_then_each_doubles_the_wait() -> None:
    lockout, now_ms, waits = Lockout(), 0, []
    fail(lockout, "10.0.0.1", FREE_FAILURES)
    for _ in range(8):
        wait_ms = lockout.try_now("10.0.0.1", now_ms)
        waits.append(wait_ms)
        assert lockout.try_now("10.0.0.1", now_ms + wait_ms - 1) == 1, "to ask again costs nothing"
        now_ms += wait_ms
        assert lockout.try_now("10.0.0.1", now_ms) == 0
    assert waits == [30_000, 60_000, 120_000, 240_000, 480_000, LAST_WAIT_MS, LAST_WAIT_MS, LAST_WAIT_MS]


def test_a_quiet_time_forgets_failures() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES, now_ms=1_000)
    fail(lockout, "10.0.0.1", FREE_FAILURES, now_ms=1_000 + FIRST_WAIT_MS + LAST_WAIT_MS + 1)


def test_failures_within_the_quiet_time_go_on_counting() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES)
    later_ms = FIRST_WAIT_MS + LAST_WAIT_MS
    fail(lockout, "10.0.0.1", 1, later_ms)
    assert lockout.try_now("10.0.0.1", later_ms) == 2 * FIRST_WAIT_MS


def test_a_success_takes_back_itself_and_no_failure_before_it() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES - 1)
    for now_ms in range(1, 20):
        fail(lockout, "10.0.0.1", 1, now_ms)
        lockout.succeeded("10.0.0.1")
    fail(lockout, "10.0.0.1", 1, 20)
    assert lockout.try_now("10.0.0.1", 20) == FIRST_WAIT_MS
    fail(lockout, "10.0.0.1", 1, 20 + FIRST_WAIT_MS)
    lockout.succeeded("10.0.0.1")
    assert lockout.try_now("10.0.0.1", 20 + FIRST_WAIT_MS) == 0, "who succeeded lets nobody beside them wait"


def test_who_never_failed_leaves_nothing_and_a_success_without_a_try_is_none() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", 1)
    lockout.succeeded("10.0.0.1")
    lockout.succeeded("10.0.0.1")
    assert len(lockout) == 0


def test_tries_at_once_are_not_free() -> None:
    lockout = Lockout()
    assert [lockout.try_now("10.0.0.1", 0) for _ in range(FREE_FAILURES + 2)] == [0] * FREE_FAILURES + [
        FIRST_WAIT_MS
    ] * 2


def test_one_peer_does_not_wait_for_another() -> None:
    lockout = Lockout()
    fail(lockout, "10.0.0.1", FREE_FAILURES)
    assert lockout.try_now("10.0.0.2", 0) == 0 and lockout.try_now("10.0.0.1", 0) == FIRST_WAIT_MS


def test_a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_its_ipv4_address() -> None:
    lockout = Lockout()
    fail(lockout, "2001:db8::1", FREE_FAILURES)
    assert lockout.try_now("2001:db8::ffff:2%eth0", 0) == FIRST_WAIT_MS
    assert lockout.try_now("2001:db8:0:1::1", 0) == 0
    fail(lockout, "::ffff:10.0.0.1", FREE_FAILURES)
    assert lockout.try_now("10.0.0.1", 0) == FIRST_WAIT_MS


def test_the_table_forgets_the_oldest_failure_first() -> None:
    lockout = Lockout()
    fail(lockout, "10.9.9.9", FREE_FAILURES)
    for number in range(PEERS_LIMIT):
        fail(lockout, f"peer {number}", 1, 1)
    assert len(lockout) == PEERS_LIMIT
    assert lockout.try_now("10.9.9.9", 1) == 0


def test_a_peer_that_fails_again_is_not_the_oldest_any_more() -> None:
    lockout = Lockout()
    fail(lockout, "10.9.9.9", FREE_FAILURES - 1)
    for number in range(PEERS_LIMIT - 1):
        fail(lockout, f"peer {number}", 1, 1)
    fail(lockout, "10.9.9.9", 1, 2)
    fail(lockout, "one more", 1, 3)
    assert lockout.try_now("10.9.9.9", 3) == FIRST_WAIT_MS - 1

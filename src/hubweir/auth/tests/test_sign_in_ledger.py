from hubweir.auth.lockout import FIRST_WAIT_MS, FREE_FAILURES
from hubweir.auth.sign_in_ledger import LIFETIME_MS, SESSIONS_LIMIT, SignInLedger, session_mark
from hubweir.testing.simulated_env import SimulatedEnv


def test_waits_are_of_its_clock() -> None:
    env = SimulatedEnv(1)
    ledger = SignInLedger(env)
    assert [ledger.try_now("10.0.0.1") for _ in range(FREE_FAILURES + 1)] == [0] * FREE_FAILURES + [FIRST_WAIT_MS]
    env.run_for(FIRST_WAIT_MS)
    assert ledger.try_now("10.0.0.1") == 0
    ledger.succeeded("10.0.0.1")
    assert ledger.try_now("10.0.0.1") == 0


def test_a_session_that_is_over_stays_so_until_it_could_not_be_used_anyway() -> None:
    env = SimulatedEnv(1)
    ledger = SignInLedger(env)
    ledger.end_session("a")
    env.run_for(LIFETIME_MS)
    ledger.end_session("b")
    assert ledger.is_over("a") and ledger.is_over("b") and not ledger.is_over("c")
    env.run_for(1)
    ledger.end_session("c")
    assert not ledger.is_over("a") and ledger.is_over("b")


def test_of_very_many_sessions_the_oldest_is_forgotten() -> None:
    ledger = SignInLedger(SimulatedEnv(1))
    for number in range(SESSIONS_LIMIT + 1):
        ledger.end_session(str(number))
    assert not ledger.is_over("0") and ledger.is_over("1") and ledger.is_over(str(SESSIONS_LIMIT))


def test_a_session_that_ends_twice_is_over_for_as_long_as_from_the_second_time_on() -> None:
    env = SimulatedEnv(1)
    ledger = SignInLedger(env)
    ledger.end_session("a")
    ledger.end_session("b")
    env.run_for(LIFETIME_MS)
    ledger.end_session("a")
    env.run_for(1)
    ledger.end_session("c")
    assert ledger.is_over("a") and not ledger.is_over("b"), "the one that came later holds up none before it"


def test_a_mark_tells_sessions_apart_and_not_their_nonce() -> None:
    assert (
        session_mark("a") != session_mark("b")
        and len(session_mark("a")) == 32
        and "a nonce" not in session_mark("a nonce")
    )

"""Which run tries what in which way: told by what pytest collects."""

from __future__ import annotations

import pytest

from tests.conformance.runs_of_pytest import runs_of_pytest

SHARED = "test_azure_readers.py::test_a_reader_that_did_not_ask_has_nothing_tracked"
OFTEN = "test_raw_readers.py::test_the_sixth_reader_is_refused_until_one_leaves"
LOOKS_INSIDE = "test_raw_transactions.py::test_two_minutes_behind_its_first_operation_a_transaction_is_rolled_back"
STARTS = "test_profiles.py::test_batch_of_profile_basic_has_a_quarter_of_the_size"
HAS_WAYS = "test_namespaces.py::test_the_quota_of_a_tier_holds_in_its_namespace_only"
PARTITIONED = "test_raw_partitioned.py::test_a_transaction_of_one_key_is_committed"
IN_PROCESS = "test_troubled_disk.py::test_a_client_that_is_told_to_wait_sends_again_and_its_application_notices_nothing"
TESTS = (SHARED, OFTEN, LOOKS_INSIDE, STARTS, HAS_WAYS, PARTITIONED, IN_PROCESS)
ONE, THREE, TWO = "one process", "3 broker processes", "2 broker processes"
CALLS, SOCKET, REPLICATED = "calls", "socket pair", "replicated logs"
ASYNC = {"blocking", "asyncio"}
RUNS: dict[tuple[str, ...], dict[str, set[str]]] = {
    (): {
        SHARED: {CALLS}, OFTEN: {CALLS, SOCKET}, LOOKS_INSIDE: {CALLS}, STARTS: {ONE},
        HAS_WAYS: {f"{CALLS}-{ONE}", f"{REPLICATED}-{ONE}"}, PARTITIONED: {ONE, THREE}, IN_PROCESS: ASYNC,
    },
    ("--all",): {
        SHARED: {CALLS, SOCKET, REPLICATED, THREE}, OFTEN: {CALLS, SOCKET, REPLICATED, THREE},
        LOOKS_INSIDE: {CALLS, SOCKET, REPLICATED}, STARTS: {ONE, THREE},
        HAS_WAYS: {f"{CALLS}-{ONE}", f"{REPLICATED}-{ONE}", f"{CALLS}-{THREE}"}, PARTITIONED: {ONE, THREE},
        IN_PROCESS: ASYNC,
    },
    ("--brokers", "2"): {
        SHARED: {TWO}, OFTEN: {TWO}, STARTS: {TWO}, HAS_WAYS: {f"{CALLS}-{TWO}"}, PARTITIONED: {TWO},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def said() -> dict[tuple[str, ...], str]:
    """What each run prints. A run that collects changes nothing, so one process may do all."""
    paths = [f"tests/conformance/{each}" for each in TESTS]
    printed = runs_of_pytest([["--collect-only", "-q", *options, *paths] for options in RUNS])
    return dict(zip(RUNS, printed, strict=True))


@pytest.mark.parametrize("options", RUNS, ids=lambda options: " ".join(options) or "every run")
def test_a_run_collects_each_test_in_its_ways(said: dict[tuple[str, ...], str], options: tuple[str, ...]) -> None:
    found: dict[str, set[str]] = {}
    for line in said[options].splitlines():
        if line.startswith("tests/conformance/"):
            name, _, ways = line.removeprefix("tests/conformance/").partition("[")
            found.setdefault(name, set()).add(ways.removesuffix("]"))
    assert found == RUNS[options]

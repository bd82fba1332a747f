"""Which run tries what in which way: told by what pytest collects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.mark.parametrize("options", RUNS, ids=lambda options: " ".join(options) or "every run")
def test_a_run_collects_each_test_in_its_ways(options: tuple[str, ...]) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
        + [f"tests/conformance/{each}" for each in TESTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout
    found: dict[str, set[str]] = {}
    for line in said.splitlines():
        if line.startswith("tests/conformance/"):
            name, _, ways = line.removeprefix("tests/conformance/").partition("[")
            found.setdefault(name, set()).add(ways.removesuffix("]"))
    assert found == RUNS[options]

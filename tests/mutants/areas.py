"""Which folders ./run mutants plants defects in, and which tests have to find them.

The folders are those whose mistakes lose data or let somebody in. `broker` is producers and capture at their owner.
"""

from __future__ import annotations

from dataclasses import dataclass

PACKAGE = "src/hubweir"


@dataclass(frozen=True, slots=True)
class Area:
    """A folder of the package: modules, and the tests that cover them: patterns, relative to the checkout.

    tests: without those of other folders that take long and meet these modules only by the way.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = (
    Area(
        "messaging_store",
        (f"{PACKAGE}/messaging_store/*.py", f"{PACKAGE}/messaging_store/disk/*.py",
         f"{PACKAGE}/messaging_store/segment_engine/*.py"),
        # Not the histories and failing calls of tests/simulation: they take minutes to measure, and for each survivor.
        (f"{PACKAGE}/messaging_store", "tests/simulation/test_own_faults.py"),
    ),
    Area(
        "event_hub",
        (f"{PACKAGE}/event_hub/*.py",),
        (f"{PACKAGE}/event_hub", f"{PACKAGE}/broker/tests/test_broker.py", f"{PACKAGE}/broker/tests/test_departures.py",
         f"{PACKAGE}/broker/tests/test_producers.py", f"{PACKAGE}/broker/tests/test_opened_reader.py",
         f"{PACKAGE}/broker/tests/test_readers.py", "tests/simulation/test_producer_crashes.py"),
    ),
    Area(
        "broker",
        (f"{PACKAGE}/broker/*.py", f"{PACKAGE}/broker/capture/*.py"),
        (f"{PACKAGE}/broker", "tests/simulation/test_producer_crashes.py",
         "tests/simulation/test_capture_histories.py"),
    ),
    Area(
        "capture",
        (f"{PACKAGE}/capture/*.py",),
        (f"{PACKAGE}/capture", f"{PACKAGE}/broker/capture", "tests/simulation/test_capture_histories.py"),
    ),
    Area(
        "auth",
        (f"{PACKAGE}/auth/*.py",),
        (f"{PACKAGE}/auth", f"{PACKAGE}/gateway/tests/test_authorization.py",
         f"{PACKAGE}/gateway/amqp/tests/test_cbs_node.py", f"{PACKAGE}/gateway/amqp/tests/test_connection_claims.py"),
    ),
    Area(
        "namespace",
        (f"{PACKAGE}/namespace/*.py",),
        (f"{PACKAGE}/namespace", f"{PACKAGE}/gateway/tests/test_catalog_keeper.py"),
    ),
    Area("topic", (f"{PACKAGE}/topic/*.py",), (f"{PACKAGE}/topic",)),
)  # fmt: skip

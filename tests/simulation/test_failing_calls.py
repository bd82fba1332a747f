"""T11: one script on one log, with the n-th file call failing, for every n and every way to fail, once and for ever.

Whatever fails: what was accepted is there after the restart, what was refused is not, and the store opens again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from hubweir.errors import CorruptStore, StoreError
from hubweir.kernels import which
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.retention import expire
from hubweir.testing.memory_faults import Ended, Fault
from hubweir.testing.memory_files import MemoryFiles
from tests.simulation.histories import walk_calls
from tests.simulation.log_world import LogWorld, Violation
from tests.simulation.planted_defects import ignore_failed_syncs, retry_failed_syncs

SITES = {
    "create", "open", "read", "write", "sync", "reserve", "truncate", "rename", "remove", "sync_folder", "list",
    "make_folder", "lock_folder",
}  # fmt: skip

# How many calls of the script a fault must fit at least; of a fault without a line it fits all, and 150 are the least.
LEAST_CALLS = {Fault.SHORT: 25, Fault.EINTR: 50, Fault.SYNC_EIO: 40, Fault.EMFILE: 100, Fault.ENOSPC: 100}


class Script(LogWorld):
    """The same history every time but for the fault."""

    def __init__(self, durability: Durability, files: Callable[[str], MemoryFiles] = MemoryFiles) -> None:
        super().__init__(11, files=files)
        self.durability = durability
        self.switches_modes = self.has_fences = self.has_bad_clocks = False

    def play(self) -> None:
        """Two lifetimes: fill several segments, save snapshots, expire, close; then read cold, append, be killed."""
        self.open()
        assert self.store is not None and self.log is not None
        for number in range(8):
            self.append()
            self.append()
            self.env.run_for(70)
            if number % 3 == 2:
                self.log.save_snapshot(b"state", lambda outcome: None)
                self.env.run_for(1000)
                expire(self.log, now_ms=self.env.now_ms(), retention_ms=1500)
        self.env.run_for(500)
        self.store.close(lambda: None)
        self.env.run()
        self.restart_without_healing()
        self.open()
        for _ in range(4):
            self.append()
            self.env.run_for(70)
            self.read_some()

    def restart_without_healing(self) -> None:
        self.model.ended(self.env.monotonic_ms(), power_cut=False, is_sick=True)
        self.env.crash()
        self.env = self.env.restart()

    def survive(self, nth: int, fault: Fault, *, forever: bool) -> bool:
        """Play with a fault, cut the power, heal, and check. False when fewer calls than nth fit the fault."""
        plan = self.plan = self.files.plan(fault, nth, forever=forever)
        with suppress(OSError, StoreError, Ended):
            self.play()
        self.restart(power_cut=fault not in (Fault.LYING_SYNC, Fault.KILL))
        self.open()
        self.append()
        self.env.run()
        assert self.model.sent[-1].state == "accepted", "the log does not take appends after the restart"
        self.restart(power_cut=fault is not Fault.LYING_SYNC)
        self.open()
        return plan.fired > 0


def _walk(durability: Durability, fault: Fault, forever: bool, step: int) -> int:
    def survive(nth: int) -> bool:
        return Script(durability).survive(nth, fault, forever=forever)

    return walk_calls(survive, step, f"{fault}, forever={forever}, {durability.name}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("forever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.LYING_SYNC])
@pytest.mark.parametrize("durability", Durability)
def test_every_call_may_fail(
    durability: Durability, fault: Fault, forever: bool, measure: Callable[[int], int]
) -> None:
    whole = measure(10) == 10
    calls = _walk(durability, fault, forever, (1 if whole else 5) * (5 if which() == "pure" else 1))
    assert calls > LEAST_CALLS.get(fault, 150), "the script makes fewer calls than it did"


@pytest.mark.parametrize("durability", Durability)
def test_a_sync_that_lies_does_no_harm_without_a_power_cut(durability: Durability) -> None:
    calls = 0
    while Script(durability).survive(calls + 1, Fault.LYING_SYNC, forever=False):
        calls += 1
    assert calls > LEAST_CALLS[Fault.SYNC_EIO]


def test_the_script_reaches_every_kind_of_call() -> None:
    script = Script(Durability.DURABLE)
    script.files.call_names = []
    script.play()
    assert set(script.files.call_names) == SITES


@pytest.mark.parametrize("defect", [ignore_failed_syncs, retry_failed_syncs])
def test_control_a_failed_sync_that_is_forgotten_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    with pytest.raises((Violation, CorruptStore)):
        _walk(Durability.DURABLE, Fault.SYNC_EIO, False, 1)

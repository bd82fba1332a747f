"""A share of a core for each process of a service, held by the kernel: control groups of Linux, version 1 or 2.

Where two brokers and the load generator have two cores, the generator takes what the second broker would have had.
With half a core for each process of a service the generator has a core to itself, and what is measured is what a
service does whose every process has a core, at half the speed. Needs root and a cpu controller that can be written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

PERIOD_US = 10_000
_VERSION_1, _VERSION_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


class ProcessorShare:
    """Each of these processes gets at most so much of a core, until the end of the context."""

    def __init__(self, pids: Sequence[int], cores: float) -> None:
        self._pids, self._quota_us = pids, int(cores * PERIOD_US)
        self._is_version_1 = (_VERSION_1 / "cpu.cfs_quota_us").exists()
        self._parent = _VERSION_1 if self._is_version_1 else _VERSION_2
        self._made = list[Path]()

    @staticmethod
    def is_possible() -> bool:
        """Whether this machine and this user can."""
        try:
            with ProcessorShare([], 1) as share:
                group = share._make("probe")
                return (group / "cpu.cfs_quota_us").exists() or (group / "cpu.max").exists()
        except OSError:
            return False

    def __enter__(self) -> ProcessorShare:
        for pid in self._pids:
            group = self._make(str(pid))
            if self._is_version_1:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(self._quota_us))
            else:
                (group / "cpu.max").write_text(f"{self._quota_us} {PERIOD_US}")
            (group / "cgroup.procs").write_text(str(pid))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for group in self._made:
            for pid in (group / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    (self._parent / "cgroup.procs").write_text(pid)
            group.rmdir()

    def _make(self, name: str) -> Path:
        group = self._parent / f"hubweir-bench-{os.getpid()}-{name}"
        group.mkdir()
        self._made.append(group)
        return group

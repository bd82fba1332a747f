"""Whether a process stays as it is: its memory, file descriptors and threads, looked at once a second.

The first third of the samples is a warm-up: caches fill, Python's heap finds its size. What is behind it is halved, and
the lower quartile of the later half may be above that of the earlier half by ALLOWED and no more. A leak lifts every
later sample, so it lifts the quartile; a burst lifts some, and leaves the quartile where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles

LEAST = 12
# Memory: a service that is well grew by 1 to 2 MiB between the halves of half an hour, since the tails of its logs fill
# for long. Descriptors and threads: a connection or two, and a worker, more than a quarter of the samples had before.
ALLOWED = {"memory_bytes": 4 * 2**20, "descriptors": 4, "threads": 2}


@dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    memory_bytes: int
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Growth:
    """The lower quartiles of one figure in the two halves behind the warm-up."""

    figure: str
    earlier: int
    later: int

    @property
    def complaint(self) -> str:
        """What is wrong with it; empty: nothing."""
        allowed = ALLOWED[self.figure]
        if self.later - self.earlier <= allowed:
            return ""
        return f"{self.figure} grew from {self.earlier:,} to {self.later:,}; {allowed:,} more are allowed"


def sample(pid: int) -> Sample:
    """How a process is now."""
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes, threads = (int(status.partition(f"{name}:")[2].split()[0]) for name in ("VmRSS", "Threads"))
    return Sample(kilobytes * 1_024, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()), threads)


def growth(samples: Sequence[Sample]) -> list[Growth]:
    """Of each figure; of at least LEAST samples."""
    assert len(samples) >= LEAST
    warm = [asdict(each) for each in samples[len(samples) // 3 :]]
    halves = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    return [
        Growth(figure, *(_lower_quartile([each[figure] for each in half]) for half in halves)) for figure in ALLOWED
    ]


def _lower_quartile(values: Sequence[int]) -> int:
    return round(quantiles(values, n=4)[0])

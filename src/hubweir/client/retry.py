"""Computes the delay before another try, and when to give up."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hubweir.errors import ServiceError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits grow by `factor` from first_s to longest_s; each is cut by chance to between half and all of it.

    attempts: how many tries one call gets, the first one included. The defaults are those of the official clients:
    three retries, 0.8 s, at most 60 s. What is counted is tries in a row: success starts afresh.
    """

    attempts: int = 4
    first_s: float = 0.8
    factor: float = 2.0
    longest_s: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first_s < 0 or self.factor < 1 or self.longest_s < self.first_s:
            raise ValueError(f"{self} never tries, or its waits shrink")

    def again(self, error: ServiceError, tried: int) -> bool:
        """Whether to try again after the tried-th try ended so."""
        return error.condition.retriable and tried < self.attempts

    def wait_s(self, tried: int, random: Random) -> float:
        """Before the next try, after `tried` of them (from 1) in a row failed."""
        # A bound on the exponent: a processor tries for days, and 2.0 ** 2000 is no number.
        whole = min(self.longest_s, self.first_s * self.factor ** min(tried - 1, 64))
        return whole * (0.5 + random.random() / 2)

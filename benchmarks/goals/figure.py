"""One measured thing: its values, one a round, and the goal that it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """values: one a round. unit: such as "rows/s", "MB", "ms", "us", "%" or "x", a ratio of two values of one round.

    goal: what the median has to reach, or with is_limit not to pass; None where there is none.
    """

    name: str
    values: tuple[float, ...]
    unit: str
    goal: float | None = None
    moonshot: float | None = None
    is_limit: bool = False

    @property
    def verdict(self) -> str:
        """met, missed or moonshot; nothing without a goal."""
        if self.goal is None:
            return ""
        if self.moonshot is not None and self._reaches(self.moonshot):
            return "moonshot"
        return "met" if self._reaches(self.goal) else "missed"

    @property
    def aim(self) -> str:
        """The goal as the table shows it."""
        if self.goal is None:
            return ""
        sign = "<=" if self.is_limit else ">="
        more = "" if self.moonshot is None else f" ({self.shown(self.moonshot)})"
        return f"{sign} {self.shown(self.goal)}{more}"

    def row(self) -> tuple[str, ...]:
        """Name, least, median, most, goal, verdict."""
        middle = (self.shown(value) for value in (min(self.values), median(self.values), max(self.values)))
        return (self.name, *middle, self.aim, self.verdict)

    def shown(self, value: float) -> str:
        if self.unit == "x":
            return f"{value:.2f}x"
        if self.unit in ("us", "s", "%"):
            return f"{value:.2f} {self.unit}"
        if self.unit == "ms" and value < 100:
            return f"{value:.3g} ms"
        return f"{value:,.0f} {self.unit}"

    def _reaches(self, wanted: float) -> bool:
        return median(self.values) <= wanted if self.is_limit else median(self.values) >= wanted


def ratios(above: list[float], below: list[float]) -> tuple[float, ...]:
    """Round by round: a shared machine changes from one to the next, and both values of a round see the same."""
    return tuple(one / other for one, other in zip(above, below, strict=True))

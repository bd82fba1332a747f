"""What was sent to one entity and what came of it, by numbers that count up from 0."""

from __future__ import annotations

from collections import Counter


class Ledger:
    """A number comes once, and once more for each time that its receiver asked for it again (`explain`).

    is_ordered: numbers come in the order in which they were sent. One thread sends, one may receive meanwhile.
    """

    def __init__(self, name: str, *, is_ordered: bool = False) -> None:
        self.name = name
        self._is_ordered = is_ordered
        self._sent = 0
        self._came: Counter[int] = Counter()
        self._explained: Counter[int] = Counter()
        self._newest = -1
        self._disorder: list[str] = []

    @property
    def sent(self) -> int:
        """How many numbers were sent."""
        return self._sent

    @property
    def is_whole(self) -> bool:
        """Whether as many came as should."""
        return self._came.total() >= self._sent + self._explained.total()

    def send(self, count: int) -> range:
        """The next numbers; whoever asks sends them at once."""
        first = self._sent
        self._sent += count
        return range(first, self._sent)

    def come(self, number: int) -> bool:
        """A number came; whether for the first time."""
        self._came[number] += 1
        is_new = self._came[number] == 1
        if is_new and self._is_ordered and number < self._newest:
            self._disorder.append(f"{self.name}: {number} came behind {self._newest}")
        self._newest = max(self._newest, number)
        return is_new

    def explain(self, number: int) -> None:
        """Its receiver gave it back, or set it aside as a dead letter: it comes once more."""
        self._explained[number] += 1

    def complaints(self) -> list[str]:
        """What was lost, what came too often, what nobody sent, what came out of order; the first five of each."""
        expected = Counter(range(self._sent)) + self._explained
        lost = [f"{self.name}: {number} was lost" for number in expected - self._came]
        surplus = self._came - expected
        unknown = [f"{self.name}: {number} was never sent" for number in surplus if number >= self._sent]
        repeated = [f"{self.name}: {number} came too often" for number in surplus if number < self._sent]
        return [*lost[:5], *repeated[:5], *unknown[:5], *self._disorder[:5]]

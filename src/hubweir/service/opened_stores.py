"""Knows which messaging stores are served whole: the broker is up, was told to open its logs, and answered for each.

Whoever has logs opened notes when it begins and when it is done; when a broker came or went in between, that was the
opening of another life. Nothing is kept: after a crash the next keeper has all logs opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping


class OpenedStores:
    """See the module's text. Stores by their indexes."""

    def __init__(self) -> None:
        self._opened: set[int] = set()
        self._changes = Counter[int]()

    @property
    def indexes(self) -> tuple[int, ...]:
        """Those that are, in order."""
        return tuple(sorted(self._opened))

    def changed(self, store: int) -> None:
        """The broker of a store came or went."""
        self._changes[store] += 1
        self._opened.discard(store)

    def opening(self, stores: Iterable[int]) -> Mapping[int, int]:
        """The logs of these are about to be opened, whose brokers are up. For `opened`."""
        return {store: self._changes[store] for store in stores}

    def opened(self, began: Mapping[int, int]) -> None:
        """Their brokers have answered for each log."""
        self._opened |= {store for store, changes in began.items() if self._changes[store] == changes}

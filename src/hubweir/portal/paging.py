"""Long lists come in pages, and may be searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubweir.namespace.resource_path import fold
from hubweir.portal.form import Form

T = TypeVar("T")

PAGE_COUNT = 50
_DIGITS_LIMIT = 6
SEARCH_LIMIT = 260


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A part of a list. number: from 1 on. total: of all that match. search: what was looked for, "" for everything."""

    items: Sequence[T]
    number: int
    total: int
    search: str = ""
    count: int = PAGE_COUNT

    @property
    def first(self) -> int:
        """The place of its first item, from 1 on."""
        return (self.number - 1) * self.count + 1

    @property
    def last(self) -> int:
        return self.first + len(self.items) - 1

    @property
    def has_next(self) -> bool:
        return self.last < self.total


def page_number(query: Form, total: int, count: int = PAGE_COUNT) -> int:
    """Which page of a list of so many a query asks for; the first, unless it names one, or the last that there is."""
    text = query.get("page", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_LIMIT
    pages = max(1, -(-total // count))
    return min(max(1, int(text)), pages) if is_number else 1


def page_of(query: Form, items: Sequence[T], count: int = PAGE_COUNT) -> ListPage[T]:
    """The page that a query asks for; the last one when there are not so many."""
    number = page_number(query, len(items), count)
    found = items[(number - 1) * count : number * count]
    return ListPage(found, number, len(items), search_of(query), count)


def search_of(query: Form) -> str:
    """What a query looks for."""
    return query.get("search", "").strip()[:SEARCH_LIMIT]


def matches(name: str, search: str) -> bool:
    """Whether a name holds what is looked for, in any case."""
    return fold(search) in fold(name)

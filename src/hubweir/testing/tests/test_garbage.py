from __future__ import annotations

import gc

import pytest

from hubweir.testing.garbage import come_and_stay, left_for_collections


class Part:
    def __init__(self, whole: object) -> None:
        self.whole = whole


class Whole:
    def __init__(self) -> None:
        self.part = Part(self)


def test_things_that_know_each_other_are_counted_and_freed() -> None:
    found = left_for_collections(Whole)
    assert found[f"{__name__}.Whole"] == found[f"{__name__}.Part"] == 1
    assert gc.isenabled() and not gc.get_debug() and not any(isinstance(each, Whole) for each in gc.get_objects())


def test_what_is_freed_at_once_is_not_counted() -> None:
    def step() -> None:
        whole = Whole()
        del whole.part

    assert not left_for_collections(step)


@pytest.mark.own_interpreter
def test_what_comes_and_stays_is_counted_and_what_was_there_or_went_or_is_never_looked_at_is_not() -> None:
    kept: list[object] = [Whole()]

    def step() -> None:
        kept.extend((Whole(), [], b"bytes"))
        Part(None)

    found = come_and_stay(step)
    assert (found["Whole"], found["Part"], found["list"], found["bytes"]) == (1, 1, 1, 0)
    assert gc.isenabled()

"""Histories that are played again and again: by seeds, in other processes, with a planted defect, call by call.

A failure names its seed or its call, so that it can be played alone.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from hubweir.testing.memory_faults import Fault, Plan


@contextmanager
def named(seed: int) -> Iterator[None]:
    """Whatever goes wrong inside says which seed plays it again."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}: HUBWEIR_FIRST_SEED={seed} plays it again")
        raise


def expect_enough_met(plans: Sequence[Plan], faults: Iterable[Fault], least_share: float) -> None:
    """Of the faults that histories plan so many happen, or the histories are gentler than they look.

    Of a few that are planned, chance takes some away: the square root of their number is allowed for it.
    """
    for fault in sorted(set(faults), key=lambda fault: fault.name):
        met = [plan.fired > 0 for plan in plans if plan.fault is fault]
        assert sum(met) > least_share * len(met) - math.sqrt(len(met)), (
            f"{fault}: {sum(met)} of {len(met)} planned faults were met"
        )


def expect_the_same_elsewhere(here: list[str], code: str, *, hash_seeds: Sequence[str] = ("4711",)) -> None:
    """Other processes, whose hashes have other seeds, print the same words. code: imports what tests may import."""
    paths = os.pathsep.join(sys.path)
    for hash_seed in hash_seeds:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
        there = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert there.stdout.split() == here


def first_found(play: Callable[[int], object], seeds: Iterable[int], *kinds: type[BaseException]) -> str:
    """What the first history says that finds a planted defect, by an error of these kinds. Fails when none does."""
    count = 0
    for seed in seeds:
        try:
            play(seed)
        except kinds as found:
            return str(found)
        count += 1
    pytest.fail(f"nothing was found in {count} histories")


def walk_calls(survive: Callable[[int], bool], step: int, about: str) -> int:
    """Let one call after the other fail, each in a history of its own; the first that there is not.

    survive: plays with the fault at the n-th call, and returns False when fewer calls than n fit it.
    """
    nth = 1
    while True:
        try:
            if not survive(nth):
                return nth
        except BaseException as error:
            error.add_note(f"call {nth}, {about}")
            raise
        nth += step

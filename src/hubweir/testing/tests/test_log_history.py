"""The checker of a partition's history: a good one passes, and each planted fault is found."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.testing.log_history import PartitionHistory, Seen, make_body


def read(*batches: int) -> list[Seen]:
    """One event a batch, in this order, as a sound partition gives them."""
    return [
        Seen(number, 100 * number, 1_000 + number, make_body(0, batch, 0, 1, b"x"))
        for number, batch in enumerate(batches)
    ]


def history(*batches: int, unsure: int = 0, refused: int = 0, may_be_late: bool = True) -> PartitionHistory:
    """Of three batches that were accepted, but for one of which nobody was told, and one that was refused."""
    accepted = dict.fromkeys({1, 2, 3} - {unsure, refused}, 1)
    return PartitionHistory(0, accepted=accepted, seen=read(*batches), refused={refused} - {0}, may_be_late=may_be_late)


def test_a_sound_history_passes() -> None:
    assert history(1, 2, 3).check() == []


def test_a_batch_of_which_nobody_was_told_may_be_there_late_or_never() -> None:
    assert history(2, 1, 3, unsure=1).check() == []
    assert history(2, 3, unsure=1).check() == []


@pytest.mark.parametrize(
    ("batches", "known", "found"),
    [
        ((1, 3), {}, "batch 2 was accepted and is lost"),
        ((2, 1, 3), {}, "batch 1 behind 2: moved"),
        ((2, 1, 3), {"unsure": 1, "may_be_late": False}, "batch 1 behind 2: moved"),
        ((1, 2, 3, 1), {"unsure": 1}, "batch 1 behind 3: moved or stored twice"),
        ((2, 1, 3, 2), {"unsure": 1}, "batch 2 behind 3: moved or stored twice"),
        ((1, 2, 3), {"refused": 2}, "batch 2 was refused, and is there"),
    ],
)
def test_what_cannot_be_is_found(batches: tuple[int, ...], known: dict[str, Any], found: str) -> None:
    assert any(found in each for each in history(*batches, **known).check())

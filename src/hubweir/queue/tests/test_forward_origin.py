"""forward_origin.py: what a message was first, in one number, and what it is once it is forwarded."""

from __future__ import annotations

from array import array

import pytest

from hubweir.queue.forward_origin import FORWARDED, HOP_LIMIT, hops_of, next_origins, number_of, origin

# Of the last fragment that there may be, and the largest that the column holds.
NUMBERS = (1, 2**48 - 1, 0x7FF << 48 | 2**48 - 1, 2**59 - 1)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("hops", range(1, HOP_LIMIT + 1))
def test_number_and_hops_come_back_and_the_column_holds_both(number: int, hops: int) -> None:
    first = origin(number, hops)
    assert (number_of(first), hops_of(first)) == (number, hops)
    assert array("q", [first])[0] == first >= FORWARDED


@pytest.mark.parametrize("count", [0, 1, 2**48 - 1, FORWARDED - 1])
def test_a_message_that_was_sent_here_has_no_hops_and_is_its_own_count(count: int) -> None:
    assert (number_of(count), hops_of(count)) == (count, 0)


@pytest.mark.parametrize(("number", "hops"), [(0, 1), (-1, 1), (2**59, 1), (1, 0), (1, HOP_LIMIT + 1)])
def test_what_no_message_can_have_made_is_no_origin(number: int, hops: int) -> None:
    with pytest.raises(AssertionError, match="cannot have made"):
        origin(number, hops)


def test_messages_that_were_sent_here_begin_with_the_numbers_that_they_have_here() -> None:
    """Their counts say when they came first, and are no numbers that anybody saw."""
    assert next_origins(array("q", [7, 8]), array("q", [107, 108])) == array("q", [origin(107, 1), origin(108, 1)])
    assert next_origins(array("q"), array("q")) == array("q")


@pytest.mark.parametrize("hops", range(1, HOP_LIMIT))
def test_a_forwarded_one_keeps_its_first_number_and_has_one_hop_more_beside_others(hops: int) -> None:
    firsts = array("q", [7, origin(55, hops), 9])
    numbers = array("q", [107, 108, 109])
    assert next_origins(firsts, numbers) == array("q", [origin(107, 1), origin(55, hops + 1), origin(109, 1)])
    assert list(firsts) == [7, origin(55, hops), 9]

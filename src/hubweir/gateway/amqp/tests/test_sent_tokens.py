"""Which lock tokens a range of delivery ids stands for."""

from __future__ import annotations

import pytest

from hubweir.gateway.amqp.sent_tokens import SentRange, SentTokens


def tokens(first: int, count: int) -> bytes:
    return b"".join(number.to_bytes(16, "big") for number in range(first, first + count))


def taken(sent: SentTokens, first_id: int, last_id: int) -> bytes:
    return b"".join(each.tokens for each in sent.take_ranges(first_id, last_id))


def test_a_range_is_the_tokens_of_its_ids_in_order() -> None:
    sent = SentTokens()
    sent.add(10, tokens(100, 5))
    sent.add(15, tokens(200, 3))
    assert taken(sent, 12, 12) == tokens(102, 1)
    assert taken(sent, 13, 16) == tokens(103, 2) + tokens(200, 2)
    assert taken(sent, 10, 11) + taken(sent, 17, 17) == tokens(100, 2) + tokens(202, 1)
    assert not sent._stretches


@pytest.mark.parametrize("first", [0, 2**32 - 3, 2**31 - 2])
def test_ids_wrap_where_serial_numbers_do(first: int) -> None:
    sent = SentTokens()
    sent.add(first, tokens(1, 4))
    sent.add((first + 4) % 2**32, tokens(5, 4))
    [second] = sent.take_ranges((first + 7) % 2**32, (first + 7) % 2**32)
    assert (second.first_id, second.last_id, second.tokens) == ((first + 7) % 2**32, (first + 7) % 2**32, tokens(8, 1))
    assert taken(sent, (first + 2) % 2**32, (first + 5) % 2**32) == tokens(3, 4)
    assert taken(sent, first, (first + 1) % 2**32) == tokens(1, 2)
    assert taken(sent, (first + 6) % 2**32, (first + 6) % 2**32) == tokens(7, 1)


def test_a_stretch_goes_when_its_last_delivery_is_settled_and_other_links_ids_lie_between() -> None:
    sent = SentTokens()
    sent.add(5, tokens(1, 1))
    sent.add(9, tokens(2, 1))  # 6 to 8 are another link's
    assert sent.take_ranges(5, 9) == [SentRange(5, 5, tokens(1, 1)), SentRange(9, 9, tokens(2, 1))]
    assert not sent._stretches
    assert taken(sent, 5, 9) == b""
    sent.add(20, b"")
    assert not sent._stretches

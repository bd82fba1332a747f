"""The id of a message that came without one."""

from __future__ import annotations

from hubweir.queue.given_id import given_id, id_prefix_of

LOG_ID = "0123456789abcdeffedcba9876543210"


def test_a_given_id_is_32_digits_of_its_log_and_of_the_number_that_the_message_got_first() -> None:
    assert given_id(id_prefix_of(LOG_ID), 0x2A) == "0123456789abcdef000000000000002a"
    assert given_id(id_prefix_of(LOG_ID), 7 << 48 | 1) == "0123456789abcdef0007000000000001"


def test_messages_of_one_log_have_ids_of_their_own() -> None:
    assert len({given_id(id_prefix_of(LOG_ID), number) for number in (0, 1, 16, 1 << 48)}) == 4

from __future__ import annotations

import pytest

from hubweir.amqp.security.mechanisms import OFFERED, PlainResponse, decode_plain, encode_plain
from hubweir.errors import DecodeError


def test_plain_comes_back_as_it_was_written() -> None:
    assert decode_plain(encode_plain("RootManageSharedAccessKey", "schlüssel")) == PlainResponse(
        "", "RootManageSharedAccessKey", "schlüssel"
    )
    assert decode_plain(b"other\0user\0key").authorization_id == "other"


@pytest.mark.parametrize("response", [b"", b"user", b"\0user", b"\0user\0pass\0", b"\0\xff\0x", b"\0user\0\xfe"])
def test_a_response_that_is_not_three_texts_is_refused(response: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_plain(response)


def test_the_password_is_never_shown() -> None:
    assert "hunter2" not in repr(decode_plain(b"\0user\0hunter2"))


def test_the_offer_is_in_the_order_of_the_service() -> None:
    assert OFFERED == ("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL")

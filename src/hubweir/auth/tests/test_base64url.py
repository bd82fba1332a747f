import base64

import pytest

from hubweir.auth.base64url import IllegalBase64, base64url


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_the_one_text_of_bytes_is_read(data: bytes) -> None:
    assert base64url(base64.urlsafe_b64encode(data).rstrip(b"=").decode()) == data


@pytest.mark.parametrize("text", ["YQ==", "YR", "Y", "Y Q", "YQ\n", "a+b/", "YÄ", "YWI=", "\u0661\u0661"])
def test_another_text_for_the_same_bytes_is_refused(text: str) -> None:
    with pytest.raises(IllegalBase64):
        base64url(text)

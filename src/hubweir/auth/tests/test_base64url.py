import pytest

from hubweir.auth.strict_json import BRACKETS, IllegalJson, base64url, read_object


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_the_one_text_of_bytes_is_read(data: bytes) -> None:
    import base64

    assert base64url(base64.urlsafe_b64encode(data).rstrip(b"=").decode()) == data


@pytest.mark.parametrize("text", ["YQ==", "YR", "Y", "Y Q", "YQ\n", "a+b/", "YÄ", "YWI=", "\u0661\u0661"])
def test_another_text_for_the_same_bytes_is_refused(text: str) -> None:
    with pytest.raises(IllegalJson):
        base64url(text)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"7", b'"x"', b"{", b'{"a":1,"a":2}', b'{"a":{"b":1,"b":1}}', b'{"a":NaN}', b'{"a":Infinity}',
        b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":' + b"9" * 25 + b"}", b'{"a":1}x', b'\xef\xbb\xbf{"a":1}',
        b'{"a":' + b"[" * 100_000, b'{"a":' + b"[" * BRACKETS + b"]" * BRACKETS + b"}",
    ],
)  # fmt: skip
def test_what_is_not_one_plain_object_is_refused(data: bytes) -> None:
    with pytest.raises(IllegalJson):
        read_object(data)


def test_a_plain_object_is_read() -> None:
    assert read_object(b' {"a":[1,"\\u00e4",null,true,1.5]} ') == {"a": [1, "ä", None, True, 1.5]}
    deep = BRACKETS - 1
    assert "a" in read_object(b'{"a":' + b"[" * deep + b"]" * deep + b"}")

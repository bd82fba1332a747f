"""JSON of strangers: what is legal is read, what is dangerous or ambiguous is refused, fast."""

import json
import time

import pytest

from hubweir.namespace.strict_json import DEPTH, IllegalJson, read_json, read_object


@pytest.mark.parametrize(
    "value",
    [
        [], {}, None, True, 0, -1.5, "x", "\u00e9\u4e16\U0001f600", 2**63 - 1, -(2**63), [[[{"a": {"b": [1]}}]]],
        {"text": '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ "quoted" {{{{ \\'},
    ],
)  # fmt: skip
def test_legal_json_is_read(value: object) -> None:
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_depth_has_a_limit() -> None:
    assert read_json(b"[" * DEPTH + b"]" * DEPTH) is not None
    assert read_json(b"[" + b"[]," * 10_000 + b"[]]") == [[]] * 10_001
    with pytest.raises(IllegalJson, match="deeper than 32"):
        read_json(b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1))


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b'{"a": 1, "a": 2}',
        b'[{"a": {"b": 1, "b": 1}}]', b"1e999", b"-1e999", b"NaN", b"Infinity", b"-Infinity", b"1" * 5_000,
        b"0." + b"1" * 5_000, b"9223372036854775808", b'"\\ud800"', b'{"\\udc00": 1}', b'"\\ud800\\u0041"', b"\xff",
        b'"\xed\xa0\x80"', b"\xef\xbb\xbf[]", "[]".encode("utf-16"),
        b"", b"[1,]", b"[1] 2", b"{'a': 1}", b'"a\nb"', b"// no\n1", b"01", b"+1", b".5", b"\x00",
    ],
    ids=lambda data: repr(data[:24]),
)  # fmt: skip
def test_what_is_dangerous_or_ambiguous_is_refused_fast(data: bytes) -> None:
    """Attack 83."""
    started = time.process_time()
    with pytest.raises(IllegalJson) as refusal:
        read_json(data)
    assert len(str(refusal.value)) < 300
    assert time.process_time() - started < 1


def test_many_brackets_in_a_string_cost_no_more_than_reading_it() -> None:
    started = time.process_time()
    assert read_json(json.dumps('[{\\"' * 200_000).encode()) == '[{\\"' * 200_000
    assert time.process_time() - started < 1


@pytest.mark.parametrize("data", [b"[]", b"7", b'"x"', b"null", b"{", b'{"a":1}x', b"[{}]"])
def test_what_is_not_one_object_is_refused_where_one_is_wanted(data: bytes) -> None:
    with pytest.raises(IllegalJson):
        read_object(data)
    assert read_object(b' {"a":[1,"\\u00e4",null,true,1.5]} ') == {"a": [1, "ä", None, True, 1.5]}

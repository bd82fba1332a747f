"""file_text.py: bytes become text or are refused by their place, and every place has a line and a column."""

import pytest

from hubweir.config.file_text import SIZE_LIMIT_BYTES, LinePositions, NotText, decode_text


@pytest.mark.parametrize(
    "data",
    [
        b'["\xc3\xa9"]',
        b'\xef\xbb\xbf["\xc3\xa9"]',
        '\ufeff["é"]'.encode("utf-16-le"),
        '\ufeff["é"]'.encode("utf-16-be"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_text(data: bytes) -> None:
    assert decode_text(data) == '["é"]'


@pytest.mark.parametrize(
    ("data", "line", "column", "found"),
    [
        (b"{\n  \xff", 2, 3, "byte 0xff"),
        ('{\r\n"é'.encode() + b"\xc3", 2, 3, "byte 0xc3"),
        (b"\xef\xbb\xbf\n\x80", 2, 1, "byte 0x80"),
        ('\ufeff{\n"'.encode("utf-16-le") + b"\x00\xd8", 2, 2, "byte 0x00"),
        (b"\xff\xfe{", 1, 1, "byte 0x7b"),
    ],
)
def test_bytes_that_are_no_text_are_refused_by_line_and_column(data: bytes, line: int, column: int, found: str) -> None:
    with pytest.raises(NotText) as caught:
        decode_text(data)
    assert (caught.value.line, caught.value.column, caught.value.found) == (line, column, found)


def test_size_is_bounded_at_the_limit_and_not_before() -> None:
    assert len(decode_text(b" " * SIZE_LIMIT_BYTES)) == SIZE_LIMIT_BYTES
    with pytest.raises(NotText, match="too large"):
        decode_text(b" " * (SIZE_LIMIT_BYTES + 1))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_as_any_system_ends_it(end: str) -> None:
    text = f"ab{end}{end}c"
    positions = LinePositions(text)
    assert positions.line_and_column(0) == (1, 1) and positions.line_and_column(1) == (1, 2)
    assert positions.line_and_column(text.index("c")) == (3, 1)
    assert positions.line_and_column(len(text)) == (3, 2)


def test_the_empty_text_has_one_place() -> None:
    assert LinePositions("").line_and_column(0) == (1, 1)

"""The text of a configuration file, and its lines and columns.

UTF-8 with or without a byte order mark; UTF-16 only with one, as the Windows shell writes it and the official loader
reads it. At most SIZE_LIMIT_BYTES.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right

SIZE_LIMIT_BYTES = 1_048_576

_LINE_END = re.compile(r"\r\n|\r|\n")


class NotText(Exception):
    """The bytes are too many, or not text. line, column: where; found, allowed: what stands there, and what may."""

    def __init__(self, what: str, *, found: str, allowed: str, line: int = 1, column: int = 1) -> None:
        super().__init__(what)
        self.what = what
        self.found = found
        self.allowed = allowed
        self.line = line
        self.column = column


class LinePositions:
    """Lines and columns of a text, both from 1. A line ends with LF, CR LF or CR."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def line_and_column(self, at: int) -> tuple[int, int]:
        """Of the character with index at; the end of the text has a place, too."""
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1


def decode_text(data: bytes) -> str:
    """The text of a file. Raises NotText with line and column."""
    if len(data) > SIZE_LIMIT_BYTES:
        raise NotText("the file is too large", found="more", allowed=f"{SIZE_LIMIT_BYTES} bytes")
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return _decode(data[len(mark) :], encoding)
    return _decode(data, "utf-8")


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding)
        line, column = LinePositions(before).line_and_column(len(before))
        raise NotText(
            "the file is not text", found=f"byte 0x{data[error.start]:02x}", allowed="UTF-8", line=line, column=column
        ) from None

"""Avro object container files, honest ones by fastavro and hostile ones byte by byte."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Sequence
from typing import Any

import fastavro

ORDER = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [{"name": "dish", "type": "string"}, {"name": "table", "type": ["null", "int"]}],
}  # fmt: skip
ORDERS = ({"dish": "tea", "table": 7}, {"dish": "café", "table": None})
SYNC = b"S" * 16


def written(schema: Any, records: Sequence[Any], codec: str = "null") -> bytes:
    """A file as fastavro writes it; each time the same."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records, codec=codec, sync_marker=SYNC)
    return out.getvalue()


def orders(codec: str = "null") -> bytes:
    return written(ORDER, ORDERS, codec)


def long(value: int) -> bytes:
    """An Avro long, of any size and sign."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def made(schema: object, block: bytes, *, count: int = 1, size: int | None = None, codec: bytes = b"null") -> bytes:
    """A file with one block, whatever it claims. size: that is said of the block; None: the right one."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    pairs = (b"avro.codec", codec, b"avro.schema", text)
    metadata = long(2) + b"".join(long(len(each)) + each for each in pairs) + long(0)
    return b"Obj\x01" + metadata + SYNC + long(count) + long(len(block) if size is None else size) + block + SYNC


def deflated(size: int) -> bytes:
    """A block of so many zeros, as the codec deflate has it."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    piece = bytes(1024 * 1024)
    return b"".join(packer.compress(piece) for _ in range(size // len(piece))) + packer.flush()


def bomb(size: int) -> bytes:
    """A few thousandths of its size in bytes, which is that many when it is inflated: an empty value, and zeros."""
    return made("bytes", deflated(size), codec=b"deflate")


def endless() -> bytes:
    """A megabyte that asks for a hundred billion values, one after another in the same little memory.

    A map has the same key again and again; its value is a record of two records of two records …
    """
    schema: object = "null"
    for depth in range(16):
        again = f"r{depth - 1}" if depth else "null"
        fields = [{"name": "left", "type": schema}, {"name": "right", "type": again}]
        schema = {"type": "record", "name": f"r{depth}", "fields": fields}
    return made({"type": "map", "values": schema}, long(900_000) + bytes(900_000))


def bottomless() -> bytes:
    """A record that holds itself."""
    return made({"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}, b"")


def greedy() -> bytes:
    """A hundred bytes that hold an array of a trillion nulls."""
    return made({"type": "array", "items": "null"}, long(2**40))


# What it is called: its bytes, and what a page says of it.
HOSTILE = {
    "bytes that are not there": (made("bytes", long(2**40)), "EOFError"),
    "a length below zero": (made("bytes", long(-5)), "EOFError"),
    "a block that is not there": (made("bytes", b"", size=2**40), "EOFError"),
    "a fixed size that is not there": (made({"type": "fixed", "name": "f", "size": 2**40}, b"abc"), "EOFError"),
    "a schema that nests": (made(b'{"type":"array","items":' * 100_000, b""), "RecursionError"),
    "a schema that is none": (made({"type": "tea"}, b""), "UnknownType"),
    "metadata without end": (b"Obj\x01" + long(2**40), "ValueError"),
    "the magic alone": (b"Obj\x01", "ValueError"),
    "an unknown codec": (made("bytes", b"\0", codec=b"tea"), "tea"),
    "a codec that is no text": (made("bytes", b"\0", codec=b"\xff"), "UnicodeDecodeError"),
    "a text that is none": (made("string", b"\x02\xff"), "UnicodeDecodeError"),
    "a name with half a pair": (made(b'{"type":"enum","name":"\\ud800","symbols":["a"]}', b"\2"), ""),
}  # fmt: skip

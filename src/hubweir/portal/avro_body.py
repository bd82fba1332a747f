"""Avro as a body shows it: whether the body carries its schema, and which schema it names where it does not.

An object container file carries its schema. What clients of a schema registry write names one that lies elsewhere: in
the content type (Azure), or in front of the body (others). Avro's own single-object encoding has the fingerprint of
its schema in front. (Avro 1.11 specification, object container files and single-object encoding)
"""

from __future__ import annotations

import msgspec

FILE_MAGIC = b"Obj\x01"
_OBJECT_MAGIC, _FINGERPRINT_SIZE = b"\xc3\x01", 8
# Of Azure's schema registry: the schema's id stands behind it.
_REGISTRY_TYPE = "avro/binary+"
_ID_MAGIC, _ID_SIZE = b"\x00", 4
_TEXT_LIMIT = 100


class AvroText(msgspec.Struct, frozen=True):
    """An object container file, read. text: its records as JSON, as far as they are shown; is_cut: they go on.

    schema, codec: as people call them. problem: why it could be read no further; "" for nothing.
    """

    text: str = ""
    is_cut: bool = False
    schema: str = ""
    codec: str = ""
    problem: str = ""


def is_avro_file(body: bytes) -> bool:
    """Whether it begins as an object container file does."""
    return body.startswith(FILE_MAGIC)


def missing_schema(body: bytes, content_type: str) -> str:
    """Why a body that is no object container file cannot be read as Avro: which schema it would need, if it says so."""
    if content_type.startswith(_REGISTRY_TYPE):
        schema = content_type.removeprefix(_REGISTRY_TYPE)[:_TEXT_LIMIT]
        return f"It carries no schema: its content type names schema {schema} of a schema registry."
    behind = len(_OBJECT_MAGIC) + _FINGERPRINT_SIZE
    if body.startswith(_OBJECT_MAGIC) and len(body) >= behind:
        fingerprint = body[len(_OBJECT_MAGIC) : behind].hex()
        return f"A single Avro object without its schema, whose fingerprint (CRC-64-AVRO) is {fingerprint}."
    behind = len(_ID_MAGIC) + _ID_SIZE
    if body.startswith(_ID_MAGIC) and len(body) >= behind:
        schema = str(int.from_bytes(body[len(_ID_MAGIC) : behind]))
        return f"It carries no schema. If a client of a schema registry wrote it, its first bytes name schema {schema}."
    return "It is no Avro object container file, and Avro that carries no schema cannot be read."

"""What a body that carries no schema says of the one that it wants."""

import io

import fastavro
import pytest

from hubweir.portal.avro_body import is_avro_file, missing_schema
from hubweir.portal.tests.avro_files import ORDER, ORDERS, orders


def test_a_file_is_told_by_its_first_bytes() -> None:
    assert is_avro_file(orders()) and not is_avro_file(b"Obj\x02" + orders()[4:]) and not is_avro_file(b"Obj")


def test_the_fingerprint_of_a_single_object_is_the_one_that_fastavro_gives_its_schema() -> None:
    parsed = fastavro.parse_schema(ORDER)
    fingerprint = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(parsed), "CRC-64-AVRO")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, ORDERS[0])
    single = b"\xc3\x01" + bytes.fromhex(fingerprint) + out.getvalue()
    assert f"(CRC-64-AVRO) is {fingerprint}." in missing_schema(single, "avro/binary")
    assert "no Avro object container file" in missing_schema(single[:9], ""), "half a fingerprint is none"


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (b"\x0etea", "avro/binary+0123abcd", "its content type names schema 0123abcd of a schema registry."),
        (b"\x00\x00\x00\x01\x02tea", "", "its first bytes name schema 258."),
        (b"\x00\x00\x00\x01", "", "no Avro object container file"),
        (b"", "", "no Avro object container file"),
        (b'{"tea": 2}', "application/json", "no Avro object container file"),
    ],
)
def test_where_the_schema_would_be_is_told(body: bytes, content_type: str, said: str) -> None:
    assert said in missing_schema(body, content_type)


def test_a_content_type_makes_no_long_page() -> None:
    assert len(missing_schema(b"", "avro/binary+" + "x" * 10_000)) < 200

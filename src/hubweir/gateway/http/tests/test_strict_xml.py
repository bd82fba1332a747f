"""XML of strangers: elements and text are read, DOCTYPEs in any disguise and endless depth are refused, fast."""

import time

import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.strict_xml import DEPTH, ELEMENT_COUNT, XML_BYTES, read_xml, xml_text

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">'
    + "".join(f'<!ENTITY b{n} "{"&b" * 10}{n - 1 or ""};">' for n in range(1, 9))
    + "]><a>&b8;</a>"
)


def test_elements_are_found_whatever_their_namespace() -> None:
    root = read_xml(
        b'<?xml version="1.0" encoding="utf-8"?><e xmlns="urn:a"><x:b xmlns:x="urn:b"> 1&amp;<!-- no -->2'
        b"<c/></x:b><b>second</b><![CDATA[<d>]]></e>"
    )
    assert (root.name, root.text) == ("e", "<d>")
    first = root.child("b")
    assert first is not None and first.text == " 1&2"
    assert root.find("c") is first.children[0]
    assert root.find("e") is root
    assert root.find("nothing") is None and root.child("c") is None


def test_depth_count_and_size_have_limits() -> None:
    assert read_xml(b"<a>" * DEPTH + b"</a>" * DEPTH).name == "a"
    assert len(read_xml(b"<a>" + b"<b/>" * (ELEMENT_COUNT - 1) + b"</a>").children) == ELEMENT_COUNT - 1
    assert read_xml(b"<a>" + b" " * (XML_BYTES - 7) + b"</a>").name == "a"
    for data in (
        b"<a>" * (DEPTH + 1) + b"</a>" * (DEPTH + 1),
        b"<a>" + b"<b/>" * ELEMENT_COUNT + b"</a>",
        b"<a>" + b" " * (XML_BYTES - 6) + b"</a>",
    ):
        with pytest.raises(ServiceError):
            read_xml(data)


@pytest.mark.parametrize(
    "data",
    [
        BOMB.encode(),
        BOMB.encode("utf-16"),
        BOMB.replace('"1.0"', '"1.0" encoding="utf-16"').encode("utf-16"),
        BOMB.replace('"1.0"', '"1.0" encoding="utf-7"').encode("utf-7"),
        BOMB.replace("DOCTYPE", "doctype").encode(),
        BOMB.replace('"1.0"', '"1.0" encoding="cp037"').encode("cp037"),
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "http://127.0.0.1:1/">]><a>&x;</a>',
        b"<a>&x;</a>",
        b"<a>" * 200_000,
        b"<a" + b" a='1'" * 2 + b"/>",
        b"<a>\x00</a>",
        b"<a>\xff</a>",
        b"<a>&#0;</a>",
        b"<a></b>",
        b"<a/><b/>",
        b"<x:a/>",
        b"text",
        b"",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_dangerous_or_broken_is_refused_fast(data: bytes) -> None:
    """Attack 82."""
    started = time.process_time()
    with pytest.raises(ServiceError) as refusal:
        read_xml(data)
    assert refusal.value.condition is ARGUMENT_ERROR
    assert "passwd" not in refusal.value.text
    assert time.process_time() - started < 1


def test_any_text_is_character_data_that_is_read_again() -> None:
    told = "a\t\r\n<&>\"' \U0001f600"
    assert read_xml(f"<a>{xml_text(told)}</a>".encode()).text == told
    unspeakable = "\x00\x01\x0b\x1f\ufffe\uffff"
    assert read_xml(f"<a>{xml_text(unspeakable)}</a>".encode()).text == "\ufffd" * len(unspeakable)

"""XML of strangers: 64 KiB, depth 32, UTF-8, and no DOCTYPE, so that nothing in it can grow or point outside. And texts
of strangers as XML holds them.

(Rule R25: a DOCTYPE is refused before anything is parsed; the parser's own handler stands behind that.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from hubweir.errors import ARGUMENT_ERROR, ServiceError

XML_BYTES = 64 * 1024
DEPTH = 32
ELEMENT_COUNT = 4_096
_TYPE = "http://www.w3.org/2001/XMLSchema-instance type"
# What no XML document can hold, escaped or not. (XML 1.0, section 2.2)
_NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DECLARATIONS = (b"<!DOCTYPE", b"<!doctype", b"<!ENTITY")


@dataclass(slots=True)
class Element:
    """name: without its namespace. text: all character data directly inside, joined.

    type: what the attribute `type` of XML Schema instances says, without its prefix; "" when there is none.
    """

    name: str
    type: str = ""
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def child(self, name: str) -> Element | None:
        """The first child of this name."""
        return next((child for child in self.children if child.name == name), None)

    def find(self, name: str) -> Element | None:
        """This element or the first one below it, in document order, that has this name."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            if element.name == name:
                return element
            waiting += reversed(element.children)
        return None


def read_xml(data: bytes) -> Element:
    """The root of a document; ServiceError ARGUMENT_ERROR says what is wrong."""
    if len(data) > XML_BYTES:
        raise refused(f"it has more than {XML_BYTES} bytes")
    if any(declaration in data for declaration in _DECLARATIONS):
        raise refused("it has a DOCTYPE, and none is taken")
    reader = _Reader()
    # The encoding is given, so whatever the document says of itself, no other is read.
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.EntityDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise refused(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
    if reader.root is None:
        raise refused("it is empty")
    return reader.root


def xml_text(text: str) -> str:
    """A text of anybody's as character data. What no XML can hold comes over AMQP, say in a rule: it is told as U+FFFD,
    and the document with it stays one that clients can read."""
    return escape(_NO_CHARACTERS.sub("\ufffd", text), {"\r": "&#13;"})


def refused(why: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"The XML of the request is not what it must be: {why}.")


class _Reader:
    """Builds elements; an explicit stack, so depth costs nothing but its limit."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0

    def doctype(self, *_: object) -> None:
        raise refused("it has a DOCTYPE, and none is taken")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= DEPTH or self._count > ELEMENT_COUNT:
            raise refused(f"it is nested deeper than {DEPTH} levels, or has more than {ELEMENT_COUNT} elements")
        element = Element(name.rpartition(" ")[2], attributes.get(_TYPE, "").rpartition(":")[2])
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _: str) -> None:
        self._open.pop()

    def characters(self, text: str) -> None:
        self._open[-1].text += text

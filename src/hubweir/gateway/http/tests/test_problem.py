"""Errors as HTTP answers."""

from xml.etree import ElementTree

import pytest

from hubweir.errors import CONDITIONS, SERVER_BUSY, UNAUTHORIZED, ServiceError
from hubweir.gateway.http.problem import BUSY_WAIT_S, HttpRefusal, headers_of, problem_xml, status_of
from hubweir.namespace.error_text import Reference, with_reference

REFERENCE = Reference("0123456789abcdef" * 2, "ns:gateway0", 0)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.symbol)
def test_every_condition_has_its_status_and_its_text_in_the_body(condition: object) -> None:
    error = ServiceError(condition, "Not so.")  # type: ignore[arg-type]
    root = ElementTree.fromstring(problem_xml(error, with_reference(error.text, REFERENCE)))
    assert root.tag == "Error"
    assert [child.tag for child in root] == ["Code", "Detail"]
    assert root[0].text == str(status_of(error))
    assert root[1].text == with_reference("Not so.", REFERENCE)
    assert 400 <= status_of(error) < 600


def test_text_of_a_peer_stays_text() -> None:
    error = HttpRefusal(400, "<Code>200</Code>\r\n\x1b[31m&amp;")
    root = ElementTree.fromstring(problem_xml(error, with_reference(error.text, REFERENCE)))
    assert (root[1].text or "").startswith("<Code>200</Code>???[31m&amp;, TrackingId:")


def test_headers_go_with_the_status() -> None:
    assert headers_of(ServiceError(SERVER_BUSY, "")) == {
        "hubweir-condition": "com.microsoft:server-busy", "retry-after": str(BUSY_WAIT_S),
    }  # fmt: skip
    assert headers_of(ServiceError(UNAUTHORIZED, "")) == {
        "hubweir-condition": "amqp:unauthorized-access", "www-authenticate": "SharedAccessSignature",
    }  # fmt: skip
    assert headers_of(HttpRefusal(405, "", {"allow": "GET"})) == {"allow": "GET"}

"""The page that says whether the service is up, as the emulators' users ask for it: on a port that speaks AMQP too."""

from __future__ import annotations

import json
import ssl
from http.client import HTTPConnection, HTTPSConnection

import pytest

from tests.conformance.conftest import Doors

pytestmark = pytest.mark.conformance
WAIT_S = 30


@pytest.mark.sb(17)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_a_running_service_says_that_it_is_healthy_to_everyone(doors: Doors, tls: bool) -> None:
    """No token is shown. Plain HTTP and TLS come to the same port: its first byte says which it is."""
    if tls:
        context = ssl.create_default_context(cafile=doors.ca_file)
        connection: HTTPConnection = HTTPSConnection(doors.host, doors.port, timeout=WAIT_S, context=context)
    else:
        connection = HTTPConnection(doors.host, doors.port, timeout=WAIT_S)
    with doors.raw() as peer:
        peer.trusted()  # AMQP is spoken on the port meanwhile
        try:
            for method in ("GET", "HEAD", "GET"):  # over one connection
                connection.request(method, "/health")
                answer = connection.getresponse()
                body = answer.read()
                assert (answer.status, answer.getheader("content-type")) == (200, "application/json")
                assert method == "HEAD" or json.loads(body) == {"status": "healthy", "message": "Service is healthy."}
        finally:
            connection.close()

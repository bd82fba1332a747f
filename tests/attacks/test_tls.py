"""Attack 86: TLS of old versions, suites without encryption or proof, renegotiation, early data, wrong names.

Each has its positive control: the same client with what is allowed, which must be answered. A flood of key updates is
test_key_updates.py; what speaks no TLS on a port that has it is src/hubweir/drivers/tests/test_port_switch.py.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator

import pytest

from hubweir.testing.running_namespace import RunningNamespace, running_namespace

NAME = "localhost"
PATIENCE_S = 30


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        yield namespace


def client(newest: ssl.TLSVersion, ciphers: str = "DEFAULT") -> ssl.SSLContext:
    """A client that takes whatever it is given: of all versions up to one, with suites of no security as well."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, newest
    return context


def status(namespace: RunningNamespace, context: ssl.SSLContext, *, name: str = NAME, host: str = NAME) -> int:
    """Of the form to sign in. Raises ssl.SSLError, or ConnectionError where the service ends the handshake so."""
    with (
        socket.create_connection((namespace.host, namespace.port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=name) as tls,
    ):
        tls.sendall(f"GET /portal/sign-in HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        answer = tls.recv(64)
        assert tls.session is None or not tls.session.has_ticket, "without a ticket there is no early data"
        return int(answer.split(b" ")[1])


@pytest.mark.filterwarnings("ignore:.*TLSVersion.*:DeprecationWarning")
def test_86_old_versions_are_refused(namespace: RunningNamespace) -> None:
    for good in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        assert status(namespace, client(good)) == 200
    for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            status(namespace, client(old))


def test_86_suites_without_encryption_or_proof_are_refused(namespace: RunningNamespace) -> None:
    assert status(namespace, client(ssl.TLSVersion.TLSv1_2, "ECDHE")) == 200
    for suites in ("eNULL", "aNULL"):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            status(namespace, client(ssl.TLSVersion.TLSv1_2, suites))


def test_86_a_wrong_name_gets_no_certificate_for_it_and_opens_no_other_door(namespace: RunningNamespace) -> None:
    trusting = ssl.create_default_context(cafile=str(namespace.ca_file))
    assert status(namespace, trusting) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        status(namespace, trusting, name="evil.example")
    careless = client(ssl.TLSVersion.TLSv1_3)
    assert status(namespace, careless, name="evil.example") == 200, "Host decides, and nothing else"
    assert status(namespace, careless, name="evil.example", host="evil.example") == 421


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl asks for what Python's ssl cannot")
def test_86_nobody_renegotiates(namespace: RunningNamespace) -> None:
    def said(line: str) -> str:
        address = f"{namespace.host}:{namespace.port}"
        command = ["openssl", "s_client", "-tls1_2", "-crlf", "-connect", address]
        done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return done.stdout + done.stderr

    assert "RENEGOTIATING" not in said("Q\n")
    refused = said("R\n")
    assert "RENEGOTIATING" in refused and "no renegotiation" in refused
    assert status(namespace, client(ssl.TLSVersion.TLSv1_2)) == 200

"""TLS contexts: TLS 1.2 and newer, with the certificate of the operator or our own (development_certificate.py)."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubweir.errors import HubweirError


class BadCertificate(HubweirError):
    """A certificate or key file that cannot be used."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the certificate of a server lies; ca is None when it is not ours."""

    certificate: Path
    key: Path
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """What a verified certificate of a peer says. name: see peer_certificate. ends_at_ms: its "not after"."""

    name: str | None
    ends_at_ms: int


def server_context(files: CertificateFiles, client_ca: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 and newer. No session tickets: their keys belong to one process. BadCertificate names the file.

    client_ca: PEM file of the CAs whose client certificates are taken. A client is asked for one then and may leave it
    out; one that is not good (another CA, ended, not made for clients) ends the handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    try:
        context.load_cert_chain(files.certificate, files.key)
    except OSError as error:  # ssl.SSLError is one
        raise BadCertificate(f"cannot use the certificate {files.certificate} with key {files.key}: {error}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except OSError as error:
            raise BadCertificate(f"cannot read the CA certificates for clients, {client_ca}: {error}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def peer_certificate(fields: Mapping[str, Any] | None) -> PeerCertificate | None:
    """The certificate of `SSLSocket.getpeercert()`; None when there is none, or TLS did not verify it.

    Its name is the common name of its subject, or, when it has none, its DNS name. Several of what decides: no name,
    so that nobody chooses among them.
    """
    if not fields:
        return None
    common = [value for part in fields.get("subject", ()) for kind, value in part if kind == "commonName"]
    names = common or [value for kind, value in fields.get("subjectAltName", ()) if kind == "DNS"]
    return PeerCertificate(
        names[0] if len(names) == 1 else None, round(ssl.cert_time_to_seconds(fields["notAfter"]) * 1000)
    )


def client_context(ca: Path | None = None) -> ssl.SSLContext:
    """Verifies the server against the given CA, or against those of the system."""
    try:
        context = ssl.create_default_context(cafile=str(ca) if ca is not None else None)
    except OSError as error:
        raise BadCertificate(f"cannot read the CA certificate {ca}: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

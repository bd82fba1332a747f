"""TLS contexts: TLS 1.2 and newer, with the certificate of the operator or our own (development_certificate.py)."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from hubweir.errors import HubweirError


class BadCertificate(HubweirError):
    """A certificate or key file that cannot be used."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the certificate of a server lies; ca is None when it is not ours."""

    certificate: Path
    key: Path
    ca: Path | None = None


def server_context(files: CertificateFiles) -> ssl.SSLContext:
    """TLS 1.2 and newer. No session tickets: their keys belong to one process. BadCertificate names the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    try:
        context.load_cert_chain(files.certificate, files.key)
    except OSError as error:  # ssl.SSLError is one
        raise BadCertificate(f"cannot use the certificate {files.certificate} with key {files.key}: {error}") from None
    return context


def client_context(ca: Path | None = None) -> ssl.SSLContext:
    """Verifies the server against the given CA, or against those of the system."""
    try:
        context = ssl.create_default_context(cafile=str(ca) if ca is not None else None)
    except OSError as error:
        raise BadCertificate(f"cannot read the CA certificate {ca}: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

"""A certificate authority for clients, for tests: certificates with any names, any end, right or wrong.

Files in its folder: `ca.pem`, and for each certificate one PEM file with certificate and key, as clients load them.
"""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class ClientAuthority:
    """Signs what it is told. folder: where its files go."""

    def __init__(self, folder: Path, *, name: str = "test clients") -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key.public_key(), lifetime_s=86_400)
        certificate = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
        self.ca_file = folder / "ca.pem"
        folder.mkdir(parents=True, exist_ok=True)
        self.ca_file.write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def certificate(
        self, *common_names: str, dns_names: tuple[str, ...] = (), lifetime_s: int = 3_600, for_servers: bool = False
    ) -> Path:
        """A file with a client's certificate and key. lifetime_s: from now; below zero it has ended.

        for_servers: it is good for servers only, which no client may show.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names])
        use = ExtendedKeyUsageOID.SERVER_AUTH if for_servers else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(subject, self._name, key.public_key(), lifetime_s=lifetime_s)
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        if dns_names:
            names = x509.SubjectAlternativeName([x509.DNSName(name) for name in dns_names])
            builder = builder.add_extension(names, critical=not common_names)
        path = self._folder / f"client-{next(self._numbers)}.pem"
        path.write_bytes(
            builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, lifetime_s: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(seconds=lifetime_s))
    )

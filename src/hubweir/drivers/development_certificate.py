"""The development CA and certificate that a fresh data folder gets.

Files in the folder: `ca.pem` (give it to clients), `ca.key`, `server.pem` (certificate, then CA), `server.key`. Keys
are elliptic (P-256: made in a millisecond, RSA takes a second) and readable by their owner only. The CA stays for
ten years; the certificate is remade when the names asked for change or its end comes near, so clients that trust the
CA notice nothing. After a crash in the middle: a file is there whole or not at all, and what is missing is remade.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hubweir.drivers.tls import CertificateFiles

CA_DAYS = 3650
# Browsers and some platforms refuse server certificates of more than 398 days.
CERTIFICATE_DAYS = 397
RENEW_DAYS_BEFORE = 30


def development_certificate(
    folder: Path, names: Iterable[str], now: datetime.datetime, *, keeps_more: bool = False
) -> CertificateFiles:
    """The certificate in `folder` for these names and addresses, made or remade when it has to be.

    keeps_more: one that is for more names is not remade.
    """
    files = CertificateFiles(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = _subject_names(names)
    authority = _load(folder, "ca")
    if authority is None or _ends_soon(authority[0], now):
        authority = _make_authority(now)
        _store(folder, "ca", authority[1], [authority[0]])
    existing = _load(folder, "server")
    if (
        existing is None
        or _ends_soon(existing[0], now)
        or not _issued_by(existing[0], authority[0])
        or not _is_for(existing[0], set(wanted), keeps_more=keeps_more)
    ):
        certificate, key = _make_certificate(wanted, authority, now)
        _store(folder, "server", key, [certificate, authority[0]])
    return files


Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def _subject_names(names: Iterable[str]) -> list[x509.GeneralName]:
    """Each name once, in the order given: addresses as addresses, the rest as host names."""
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            entry: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            entry = x509.DNSName(name)
        if entry not in found:
            found.append(entry)
    return found


def _names_in(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _is_for(certificate: x509.Certificate, wanted: set[x509.GeneralName], *, keeps_more: bool) -> bool:
    names = set(_names_in(certificate))
    return wanted <= names if keeps_more else wanted == names


def _issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _ends_soon(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    return certificate.not_valid_after_utc - now < datetime.timedelta(days=RENEW_DAYS_BEFORE)


def _make_authority(now: datetime.datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # The name carries a piece of the key: two CAs of two data folders never look alike in a trust store.
    mark = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()[:8]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"hubweir development CA {mark}")])
    builder = _builder(name, name, key, now, CA_DAYS).add_extension(x509.BasicConstraints(True, 0), critical=True)
    return builder.add_extension(_usage(signs_certificates=True), critical=True).sign(key, hashes.SHA256()), key


def _make_certificate(names: list[x509.GeneralName], authority: Pair, now: datetime.datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hubweir")])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority[1].public_key())
    builder = (
        _builder(subject, authority[0].subject, key, now, CERTIFICATE_DAYS)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(False, None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
    )
    return builder.sign(authority[1], hashes.SHA256()), key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A day back: clocks of clients differ.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _load(folder: Path, name: str) -> Pair | None:
    """None when a file is missing or unusable: both are remade then."""
    try:
        certificate = x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), password=None)
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return certificate, key


def _store(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, chain: list[x509.Certificate]) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(folder / f"{name}.key", private, 0o600)
    _write(folder / f"{name}.pem", b"".join(one.public_bytes(serialization.Encoding.PEM) for one in chain), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    """New file, sync, rename: whole or absent after a crash. A leftover of one is overwritten."""
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)

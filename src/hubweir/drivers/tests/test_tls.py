import ssl
from pathlib import Path

import pytest

from hubweir.drivers.tls import (
    BadCertificate,
    CertificateFiles,
    PeerCertificate,
    client_context,
    peer_certificate,
    server_context,
)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("nothing")
    (tmp_path / "a.key").write_text("nothing")
    with pytest.raises(BadCertificate, match=r"a\.pem"):
        server_context(CertificateFiles(tmp_path / "a.pem", tmp_path / "a.key"))
    with pytest.raises(BadCertificate, match=r"missing\.pem"):
        server_context(CertificateFiles(tmp_path / "missing.pem", tmp_path / "a.key"))
    with pytest.raises(BadCertificate, match=r"missing\.pem"):
        client_context(tmp_path / "missing.pem")


def test_old_versions_are_off_and_the_server_is_verified() -> None:
    context = client_context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize(
    ("subject", "names", "name"),
    [
        ([("commonName", "a rule")], [("DNS", "other")], "a rule"),
        ([("organizationName", "o")], [("DNS", "a-rule"), ("URI", "https://x/")], "a-rule"),
        ([("commonName", "one"), ("commonName", "two")], [("DNS", "one")], None),
        ([], [("DNS", "one"), ("DNS", "two")], None),
        ([("organizationName", "o")], [("URI", "https://x/")], None),
    ],
)
def test_a_certificate_has_one_name_or_none(
    subject: list[tuple[str, str]], names: list[tuple[str, str]], name: str | None
) -> None:
    fields = {
        "subject": tuple((one,) for one in subject),
        "subjectAltName": tuple(names),
        "notAfter": "Jan  5 09:34:43 2018 GMT",
    }
    assert peer_certificate(fields) == PeerCertificate(name, 1_515_144_883_000)


@pytest.mark.parametrize("fields", [None, {}])
def test_without_a_verified_certificate_there_is_none(fields: dict[str, object] | None) -> None:
    assert peer_certificate(fields) is None

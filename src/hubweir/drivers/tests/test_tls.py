import ssl
from pathlib import Path

import pytest

from hubweir.drivers.tls import BadCertificate, CertificateFiles, client_context, server_context


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

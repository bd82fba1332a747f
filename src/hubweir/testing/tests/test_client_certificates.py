from pathlib import Path

from cryptography import x509

from hubweir.testing.client_certificates import ClientAuthority


def test_a_certificate_says_what_it_was_told_and_is_signed_by_the_authority(tmp_path: Path) -> None:
    authority = ClientAuthority(tmp_path / "ca")
    ca = x509.load_pem_x509_certificate(authority.ca_file.read_bytes())
    path = authority.certificate("sender", dns_names=("other",), lifetime_s=-60)
    made = x509.load_pem_x509_certificate(path.read_bytes())
    made.verify_directly_issued_by(ca)
    assert made.subject.rfc4514_string() == "CN=sender"
    assert made.not_valid_after_utc > made.not_valid_before_utc
    assert b"PRIVATE KEY" in path.read_bytes()
    assert authority.certificate("sender") != path

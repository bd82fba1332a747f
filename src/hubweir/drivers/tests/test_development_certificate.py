"""The development certificate: made once, for the names asked, trusted through its CA."""

import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from hubweir.drivers.development_certificate import CERTIFICATE_DAYS, development_certificate
from hubweir.drivers.tls import CertificateFiles, client_context, server_context

NOW = datetime.datetime.now(datetime.UTC)
NAMES = ("localhost", "127.0.0.1", "127.0.0.9")


def shake_hands(files: CertificateFiles, name: str, trusted: Path | None) -> str | None:
    """A real handshake over a socket pair; the TLS version agreed."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            with server_context(files).wrap_socket(ours, server_side=True) as connection:
                connection.recv(1)
        except OSError:
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client_context(trusted).wrap_socket(theirs, server_hostname=name) as connection:
            return connection.version()
    finally:
        theirs.close()
        thread.join()


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_trusts_the_ca_accepts_every_name_asked(tmp_path: Path, name: str) -> None:
    files = development_certificate(tmp_path / "tls", NAMES, NOW)
    assert shake_hands(files, name, files.ca) == "TLSv1.3"


def test_other_names_and_other_cas_are_refused(tmp_path: Path) -> None:
    files = development_certificate(tmp_path / "tls", NAMES, NOW)
    other = development_certificate(tmp_path / "other", NAMES, NOW)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(files, "127.0.0.8", files.ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(files, "localhost", other.ca)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    development_certificate(tmp_path, NAMES, NOW)
    before = contents(tmp_path)
    development_certificate(tmp_path, reversed(NAMES), NOW)
    assert contents(tmp_path) == before
    assert sorted(before) == ["ca.key", "ca.pem", "server.key", "server.pem"]


def test_new_names_remake_the_certificate_and_keep_the_ca(tmp_path: Path) -> None:
    development_certificate(tmp_path, NAMES, NOW)
    before = contents(tmp_path)
    files = development_certificate(tmp_path, (*NAMES, "broker.test"), NOW)
    after = contents(tmp_path)
    assert after["ca.pem"] == before["ca.pem"]
    assert after["server.pem"] != before["server.pem"]
    assert shake_hands(files, "broker.test", files.ca)


def test_a_certificate_near_its_end_is_remade(tmp_path: Path) -> None:
    development_certificate(tmp_path, NAMES, NOW)
    before = contents(tmp_path)
    development_certificate(tmp_path, NAMES, NOW + datetime.timedelta(days=CERTIFICATE_DAYS - 29))
    assert contents(tmp_path)["server.pem"] != before["server.pem"]


@pytest.mark.parametrize("lost", ["ca.key", "ca.pem", "server.key", "server.pem"])
def test_a_lost_or_damaged_file_is_made_good(tmp_path: Path, lost: str) -> None:
    files = development_certificate(tmp_path, NAMES, NOW)
    (tmp_path / lost).unlink()
    development_certificate(tmp_path, NAMES, NOW)
    assert shake_hands(files, "localhost", files.ca)
    (tmp_path / lost).write_bytes(b"damaged")
    development_certificate(tmp_path, NAMES, NOW)
    assert shake_hands(files, "localhost", files.ca)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    development_certificate(tmp_path / "tls", NAMES, NOW)
    for name in ("ca.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600

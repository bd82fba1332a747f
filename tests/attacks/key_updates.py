"""A client of TLS 1.3 that changes its keys as often as it likes, which Python's ssl cannot be asked for.

OpenSSL shakes hands and reads; what is written afterwards is made here, of the secret that OpenSSL writes into a key
log: each record is sealed with the key of the present secret, and the secret behind a KeyUpdate is derived from the one
before it (RFC 8446, sections 5.2, 5.3, 7.2 and 7.3).
"""

from __future__ import annotations

import socket
import ssl
import struct
from pathlib import Path
from types import TracebackType

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

APPLICATION_DATA, HANDSHAKE = 23, 22
KEY_UPDATE = bytes((24, 0, 0, 1))  # a handshake message of one byte
# The suites with these key lengths and hashes; a client that offers no other is given one of them.
SUITES = {"TLS_AES_128_GCM_SHA256": (16, hashes.SHA256()), "TLS_AES_256_GCM_SHA384": (32, hashes.SHA384())}
TAG_SIZE, NONCE_SIZE = 16, 12


class KeyUpdatingClient:
    """One connection. key_log: a file that is written."""

    def __init__(self, host: str, port: int, key_log: Path, *, patience_s: float) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = str(key_log)
        plain = socket.create_connection((host, port), patience_s)
        # What is made here goes past OpenSSL, over the same connection.
        self._plain = plain.dup()
        self._plain.settimeout(patience_s)
        self._tls = context.wrap_socket(plain, server_hostname="localhost")
        suite = self._tls.cipher()
        assert suite is not None and suite[0] in SUITES, f"this suite is not sealed here: {suite}"
        self._key_size, self._hash = SUITES[suite[0]]
        said = [line.rsplit(" ", 1) for line in key_log.read_text().splitlines()]
        [secret] = [key for label, key in said if label.startswith("CLIENT_TRAFFIC_SECRET_0 ")]
        self._take(bytes.fromhex(secret))

    def __enter__(self) -> KeyUpdatingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tls.close()
        self._plain.close()

    def update_keys(self, count: int, *, is_answered: bool) -> None:
        """Send so many changes. is_answered: each asks the other side to change its keys, too."""
        message, records = KEY_UPDATE + bytes((is_answered,)), bytearray()
        for _ in range(count):
            records += self._record(message, HANDSHAKE)
            self._take(self._derived(self._secret, b"traffic upd", self._hash.digest_size))
        self._plain.sendall(records)

    def send(self, data: bytes) -> None:
        self._plain.sendall(self._record(data, APPLICATION_DATA))

    def receive(self) -> bytes:
        """What the other side said next; empty: it closed."""
        return self._tls.recv(2**16)

    def _take(self, secret: bytes) -> None:
        self._secret = secret
        self._key = AESGCM(self._derived(secret, b"key", self._key_size))
        self._start = int.from_bytes(self._derived(secret, b"iv", NONCE_SIZE))
        self._sequence = 0

    def _derived(self, secret: bytes, label: bytes, size: int) -> bytes:
        full = b"tls13 " + label
        info = struct.pack(">HB", size, len(full)) + full + b"\0"
        return HKDFExpand(self._hash, size, info).derive(secret)

    def _record(self, content: bytes, kind: int) -> bytes:
        inner = content + bytes((kind,))
        head = struct.pack(">BHH", APPLICATION_DATA, 0x0303, len(inner) + TAG_SIZE)
        nonce = (self._start ^ self._sequence).to_bytes(NONCE_SIZE)
        self._sequence += 1
        return head + self._key.encrypt(nonce, inner, head)

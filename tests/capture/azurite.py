"""A real Azurite, the storage account of a test. Installed by npm once, or skipped loudly."""

from __future__ import annotations

import hmac
import shutil
import socket
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

from bootstrap.environment import alone
from hubweir.testing.held_ports import HeldPorts

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # everybody's
ACCOUNT = "devstoreaccount1"
INSTALL_S = 300


def azurite_command() -> list[str]:
    """Azurite as it is installed, or as npm puts it beside the environment; skips where neither is possible."""
    if found := shutil.which("azurite-blob"):
        return [found]
    if shutil.which("npm") is None:
        pytest.skip("NOT RUN: npm is not installed, so there is no Azurite to capture to")
    folder = Path(__file__).resolve().parents[2] / ".hubweir/azurite"
    script = folder / "node_modules/.bin/azurite-blob"
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):  # other workers want it at the same time
        if not script.exists():
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "azurite"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
            if done.returncode:
                pytest.skip(f"NOT RUN: npm cannot install azurite: {done.stderr[-300:]}")
    return [str(script)]


class Azurite:
    """One account on a fixed port over several lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = HeldPorts()
        [self.port] = self._held.numbers
        self._command = azurite_command()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.endpoint};"

    def signed(self, rights: str) -> str:
        """The connection string of a signature with these rights, such as rcwdl. (Create an account SAS)"""
        expiry = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = {"sv": "2021-08-06", "ss": "b", "srt": "sco", "se": expiry, "sp": rights}
        text = "\n".join((ACCOUNT, rights, "b", "sco", "", expiry, "", "", said["sv"], "", ""))
        said["sig"] = b64encode(hmac.digest(b64decode(KEY), text.encode(), "sha256")).decode()
        return f"AccountName={ACCOUNT};BlobEndpoint={self.endpoint};SharedAccessSignature={urlencode(said)}"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [*self._command, "--disableTelemetry", "--skipApiVersionCheck", "--silent", "--blobHost", "127.0.0.1"]
                + ["--blobPort", str(self.port), "--location", str(self.folder)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None and time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.1)

    def make_container(self, name: str) -> None:
        self._request("PUT", name, 201)

    def remove_container(self, name: str) -> None:
        """With all its blobs. Azurite lets its name be used again at once."""
        self._request("DELETE", name, 202)

    def _request(self, method: str, container: str, expected: int) -> None:
        """One signed request: obstore has no call for containers. (Authorize with Shared Key)"""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        canonical = f"{method}\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n"
        canonical += f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
        signature = b64encode(hmac.digest(b64decode(KEY), canonical.encode(), "sha256")).decode()
        headers = {
            "x-ms-date": date, "x-ms-version": "2021-08-06", "Content-Length": "0",
            "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        }  # fmt: skip
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, f"/{ACCOUNT}/{container}?restype=container", headers=headers)
            answer = connection.getresponse()
            assert answer.status == expected, answer.read()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None


@contextmanager
def azurite(folder: Path) -> Iterator[Azurite]:
    """A running account."""
    account = Azurite(folder)
    account.start()
    try:
        yield account
    finally:
        account.stop()

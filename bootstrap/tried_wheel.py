"""Tries an installation of hubweir as a new user would: it serves, and an event and a message go in and out."""

import os
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

READY = "hubweir is ready"
START_S, COMMAND_S = 60.0, 60.0


class WheelFailed(Exception):
    """An installed wheel does not do what it has to; the text says what was run, and what came."""


def try_wheel(binaries: Path, kernels: str) -> None:
    """binaries: the folder of the environment's programs. kernels: what hubweir.kernels.which() has to say.

    WheelFailed when anything is otherwise. The service is ended in any case.
    """
    with tempfile.TemporaryDirectory(prefix="hubweir-try-") as folder, socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        held.close()
        # No checkout is on the path: neither by a variable nor by the folder.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HUBWEIR_"))}
        key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
        kept["HUBWEIR_CONNECTION_STRING"] = f"Endpoint=sb://127.0.0.1:{port};{key}"
        tried = _Tried(binaries, Path(folder), kept)
        tried.expect(kernels, "python", "-c", "from hubweir import kernels; print(kernels.which())")
        service = subprocess.Popen(
            [binaries / "hubweir", "serve", "--port", str(port), "--data", Path(folder) / "data"],
            cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        limit = threading.Timer(START_S, service.kill)
        limit.start()
        try:
            said = _until_ready(service)
            limit.cancel()
            tried.expect("", "hubweir", "eventhub", "create", "orders", "--partitions", "2")
            tried.expect("1 event accepted", "hubweir", "send", "orders", "two teas")
            tried.expect("two teas", "hubweir", "receive", "orders", "--count", "1")
            tried.expect("", "hubweir", "queue", "create", "kitchen")
            tried.expect("1 message sent", "hubweir", "message", "send", "kitchen", "one coffee")
            tried.expect("one coffee", "hubweir", "message", "receive", "kitchen", "--count", "1")
            service.send_signal(signal.SIGTERM)
            rest, _ = service.communicate(timeout=COMMAND_S)
            if service.returncode != 0:
                raise WheelFailed(f"hubweir serve ended with status {service.returncode}:\n{said}{rest}")
        finally:
            limit.cancel()
            service.kill()
            service.communicate()


class _Tried:
    def __init__(self, binaries: Path, folder: Path, environ: dict[str, str]) -> None:
        self._binaries = binaries
        self._folder = folder
        self._environ = environ

    def expect(self, text: str, program: str, *arguments: str) -> None:
        """Run a program of the environment; its output has to hold text."""
        command = [os.fspath(self._binaries / program), *arguments]
        done = subprocess.run(
            command, cwd=self._folder, env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=COMMAND_S, check=False,
        )  # fmt: skip
        if done.returncode or text not in done.stdout:
            raise WheelFailed(f"{' '.join(command)}: status {done.returncode}, without {text!r}:\n{done.stdout}")


def _until_ready(service: "subprocess.Popen[str]") -> str:
    said = ""
    assert service.stdout is not None
    for line in service.stdout:
        said += line
        if READY in line:
            return said
    raise WheelFailed(f"hubweir serve ended, or was not ready after {START_S:.0f} s:\n{said}")

"""A peer for the rates: a quorum queue of RabbitMQ on this machine, driven over AMQP 1.0 by the same generator.

Debian's package `rabbitmq-server` is used where it is installed, in processes of the bench's own: on 127.0.0.1, with
its own name, ports, cookie and folders, never as a service of the system, and ended behind the run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path
from types import TracebackType

from hubweir.client.connection import Connection
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.held_ports import HeldPorts

SCRIPTS = "rabbitmq_server-*/sbin/rabbitmq-server"
PACKAGE = Path("/usr/lib/rabbitmq/lib")
QUEUE = "bench"
ADDRESS = f"/amq/queue/{QUEUE}"  # of a queue that is there, in the words of RabbitMQ 3 and 4 alike
# RabbitMQ 3.10 sends beyond a link's credit when that is granted again while much is on its way: with 4,000 there were
# more than the 5,000 unsettled messages that the generator's link takes.
CREDIT = 500
START_S, STOP_S = 60.0, 20.0
_SALT = b"salt"


class PeerFailed(Exception):
    """The broker did not start; its last output is in the text."""


class NoTokens:
    """What takes the place of a connection's tokens: RabbitMQ takes anyone from this machine, and knows no `$cbs`."""

    async def authorize(self, path: str) -> None:
        """Everything is allowed."""


async def open_connection(target: ConnectionString) -> Connection:
    """A connection of our client to the peer."""
    connection = await Connection.open(target)
    connection.authorization = NoTokens()  # type: ignore[assignment]
    return connection


def installed() -> Path | None:
    """The script that starts the newest one; None: none is installed."""
    return max(PACKAGE.glob(SCRIPTS), default=None) if shutil.which("epmd") else None


class QuorumQueue:
    """A broker with one queue. A context manager; version: of RabbitMQ."""

    def __init__(self, script: Path, folder: Path, cores: set[int]) -> None:
        """folder: an empty one, for all that it writes. cores: it runs on these alone."""
        self.version = script.parent.parent.name.rpartition("-")[2]
        self._script, self._folder = script, folder
        self._port, names, distribution = HeldPorts(3).numbers  # not held: Erlang may want them alone
        self._names_port, self._cores = names, cores
        self._environment = {
            **os.environ,
            "HOME": str(folder),  # its cookie lies there
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"hubweir-bench-{names}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(folder / "bench.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def target(self) -> ConnectionString:
        """Where it listens. The key says nothing."""
        return ConnectionString(host="127.0.0.1", port=self._port, key_name="guest", key=Secret("guest"), emulator=True)

    @property
    def pid(self) -> int:
        """Of the process that serves."""
        return int((self._folder / "pid").read_text())

    def __enter__(self) -> QuorumQueue:
        self._write_settings()
        epmd = shutil.which("epmd")
        assert epmd is not None
        self._start([epmd, "-port", str(self._names_port), "-address", "127.0.0.1"])
        self._start([str(self._script)])
        limit = time.monotonic() + START_S
        while not self._listens():
            if time.monotonic() > limit or self._processes[-1].poll() is not None:
                self._end()
                raise PeerFailed((self._folder / "output").read_text()[-2_000:])
            time.sleep(0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _write_settings(self) -> None:
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        is_old = self.version.startswith("3.")
        (folder / "plugins").write_text("[rabbitmq_amqp1_0].\n" if is_old else "[].\n")
        hashed = base64.b64encode(_SALT + hashlib.sha256(_SALT + b"guest").digest()).decode()
        rights = {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
        queue = {"name": QUEUE, "vhost": "/", "durable": True, "auto_delete": False}
        said = {
            "users": [{"name": "guest", "password_hash": hashed, "tags": "administrator"}],
            "vhosts": [{"name": "/"}],
            "permissions": [rights],
            "queues": [{**queue, "arguments": {"x-queue-type": "quorum"}}],
        }
        (folder / "definitions.json").write_text(json.dumps(said))
        lines = [
            f"listeners.tcp.1 = 127.0.0.1:{self._port}",
            f"load_definitions = {folder / 'definitions.json'}",
            *(["amqp1_0.default_user = guest"] if is_old else ["anonymous_login_user = guest"]),
        ]
        (folder / "bench.conf").write_text("\n".join(lines) + "\n")

    def _start(self, command: list[str]) -> None:
        with (self._folder / "output").open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=self._environment,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    preexec_fn=partial(os.sched_setaffinity, 0, self._cores),
                )
            )

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def _end(self) -> None:
        """End what was started, the broker before the process that knows its name. Each has a group of its own."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(STOP_S)
        self._processes = []

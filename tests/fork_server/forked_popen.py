"""subprocess.Popen that has programs of hubweir forked by a fork server, and starts every other as ever.

A forked process is the child of the process that asked, with the process id, the exit code and the signals of any
other. What an interpreter looks at only when it starts, and what a process has of the thread that starts it, is as it
was when the server started. So a program is started anew that asks for something else there: other variables of Python,
of the linker or of the language, descriptors besides the three streams, another user, another network. So is one that
the server does not fork, for whatever reason. One difference stays: all processes that are forked in a worker have one
seed of hash(), and so one order of a set of texts; with --all each has its own.
"""

from __future__ import annotations

import inspect
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).parents[2]
SOURCE = str(ROOT / "src")
# Beside hubweir itself, and files of the tests, which run hubweir with a planted defect.
PROGRAMS = ("hubweir.service.broker_process", "hubweir.testing.tied_server", "hubweir.testing.watched_service")
# The beginnings of what an interpreter, the linker or an import of hubweir reads in the environment.
READ_AT_THE_START = (
    "PYTHON", "LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "TZ",
    "OPENSSL_", "SSL_", "CRYPTOGRAPHY_", "PY_SAX_", "WEBSOCKETS_", "HUBWEIR_KERNELS",
)  # fmt: skip
# What a new process has of the thread that starts it, as lines of its status file, beside the namespaces of the system.
OF_THE_STARTER = ("Tgid:", "Umask:", "Cap", "NoNewPrivs:", "Cpus_allowed:")
USUAL = {
    "executable": None, "preexec_fn": None, "close_fds": True, "pass_fds": (), "shell": False, "restore_signals": True,
    "gid": None, "gids": None, "uid": None, "umask": -1, "process_group": -1,
}  # fmt: skip
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
INHERITED = -1
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)  # a job in the background ignores some
ANSWER_S = 60.0  # the first answer waits for the server's imports, on a machine that is busy with other tests
MOST_DIGITS = 20  # of a process id
RESOURCES = 16  # so many the system has limits of


@dataclass(frozen=True, slots=True)
class Order:
    """A program that is to be forked."""

    program: str  # a module, or the path of a file, or the text after -c
    is_text: bool
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    has_own_session: bool
    blocked: list[int]  # signals
    ignored: list[int]  # signals
    limits: list[tuple[int, int]]  # of resources, by their numbers

    @classmethod
    def of(cls, call: Mapping[str, Any], *, texts: bool = False) -> Order | None:
        """The order that a call of `_execute_child` is, by the names of its arguments; None: it asks for none.

        texts: whether `python -c` is one, too.
        """
        command = call["args"]
        if isinstance(command, str | bytes | os.PathLike) or any(call[name] != USUAL[name] for name in USUAL):
            return None
        match [os.fsdecode(part) for part in command]:
            case [sys.executable, "-m", program, *arguments] if program in ("hubweir", *PROGRAMS):
                pass
            case [sys.executable, program, *arguments] if program.startswith(f"{ROOT / 'tests'}{os.sep}"):
                pass
            case [sys.executable, "-c", program, *arguments] if texts:
                pass
            case _:
                return None
        environment = os.environ if call["env"] is None else call["env"]
        return cls(
            program,
            command[1] == "-c",
            arguments,
            environment={os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()},
            folder=os.path.join(os.getcwd(), os.fsdecode(call["cwd"] or "")),
            has_own_session=call["start_new_session"],
            # A service changes these before it starts others, so they travel.
            blocked=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            ignored=[number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
            limits=[resource.getrlimit(number) for number in range(RESOURCES)],
        )

    @property
    def is_supervisor(self) -> bool:
        """Whether it starts programs of hubweir itself."""
        return any(each.startswith("--brokers") for each in self.arguments)


def fixed_at_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables, and properties of this thread, that a server was started with, and that all has which it forks."""
    thread = Path("/proc/thread-self")
    lines = (thread / "status").read_text().splitlines()
    return (
        {name: value for name, value in environment.items() if name.startswith(READ_AT_THE_START)}
        | {"PYTHONPATH": _elsewhere(environment.get("PYTHONPATH", ""))}
        | {
            name: value
            for name, _, value in (line.partition("\t") for line in lines)
            if name.startswith(OF_THE_STARTER)
        }
        | {space.name: os.readlink(space) for space in (thread / "ns").iterdir()}
        | {"niceness": str(os.getpriority(os.PRIO_PROCESS, 0))}
    )


def _elsewhere(path: str) -> str:
    """The folders of a PYTHONPATH other than that of hubweir, which is installed from its checkout."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if folder != SOURCE)


class ForkServer:
    """The door to the server of this process."""

    def __init__(
        self, connect: Callable[[], socket.socket], environment: Mapping[str, str], *, texts: bool = False
    ) -> None:
        """connect: called for the door when the first order comes. environment: what the server is started with.

        texts: whether it forks for `python -c`, too. Most tests of such a program look at what it imports.
        """
        self.texts = texts
        self._door = cache(connect)
        self._fixed = fixed_at_the_start(environment)
        self._connecting = threading.Lock()

    def fork(self, order: Order, streams: Sequence[int]) -> int | None:
        """The process id of a new child of ours that is as ordered; None: there is none, and none will be.

        streams: its input, output and errors.
        """
        if fixed_at_the_start(order.environment) != self._fixed:
            return None
        with self._connecting:
            door = self._door()
        ours, theirs = socket.socketpair()
        # The server has ended, or the order is longer than what can be sent.
        with ours, suppress(OSError):
            with theirs:
                socket.send_fds(door, [json.dumps(asdict(order)).encode()], [*streams, theirs.fileno()])
            ours.settimeout(ANSWER_S)
            # Each order has a socket for its answer: where this wait is interrupted, the next order does not get it.
            if answer := ours.recv(MOST_DIGITS):
                return int(answer)
        return None


class ForkedPopen(subprocess.Popen):
    """See the module's text. Stands for subprocess.Popen in a process that has a server."""

    server: ClassVar[ForkServer]

    def _execute_child(self, *given: Any) -> None:
        call = inspect.signature(super()._execute_child).bind(*given).arguments
        order = Order.of(call, texts=self.server.texts)
        ends = (call["p2cread"], call["c2pwrite"], call["errwrite"])
        streams = [number if end == INHERITED else end for number, end in enumerate(ends)]
        pid = None if order is None else self.server.fork(order, streams)
        if pid is None:
            super()._execute_child(*given)
            return
        self.pid = pid
        self._child_created = True
        self._close_pipe_fds(*(call[name] for name in PIPES))

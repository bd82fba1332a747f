"""A process that has imported hubweir, and forks itself for its parent: `python -m tests.fork_server.server DOOR`.

Imports are nine tenths of what a start of hubweir costs the processor, and a run of the tests starts a thousand
processes of it. A forked one has them, and then does what `python -m hubweir …` does. Nothing but imports has happened
in the process that is forked: it has one thread, holds no lock and has no file open, so that rule R14 is kept.

What is forked becomes a child of the parent, as if the parent had started it: that is CLONE_PARENT of clone(2). A
supervisor starts processes, too, so it gets a server of its own, which is forked before it does anything. A server ends
when its parent is gone.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import platform
import resource
import runpy
import signal
import socket
import subprocess
import sys

from tests.fork_server.forked_popen import PROGRAMS, SIGNALS, ForkedPopen, ForkServer, Order

# What a service imports when it starts. `python -m` wants to import a program itself; what that imports stays.
IMPORTED = (
    *PROGRAMS,
    "hubweir.cli.main",
    "hubweir.cli.serve",
    "concurrent.futures.thread",
    "cryptography.hazmat.backends.openssl.backend",
    "encodings.idna",
    "uvicorn.lifespan.off",
    "uvloop",
)
CLONE_PARENT = 0x8000
CLONE_NUMBERS = {"x86_64": 56, "aarch64": 220}
MOST_BYTES = 1 << 18


def main(door: socket.socket) -> None:
    """Import, then fork for each order. In a forked process this goes on as the program that was asked for."""
    gc.disable()
    for name in IMPORTED:
        importlib.import_module(name)
    for name in PROGRAMS:
        del sys.modules[name]
    gc.freeze()
    order = next_order(door)
    while order.is_supervisor:
        ours, door = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork():
            door.close()
            ForkedPopen.server = ForkServer(lambda: ours, order.environment)  # noqa: B023 - the loop ends here
            subprocess.Popen = ForkedPopen
            break
        ours.close()
        let_streams_go()
        order = next_order(door)
    gc.enable()
    run(order)


def next_order(door: socket.socket) -> Order:
    """Returns in a forked process, with its order. The process that is forked stays here until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    while True:
        order, streams, _, _ = socket.recv_fds(door, MOST_BYTES, 3)
        if not order:
            sys.exit()
        pid = fork_sibling()
        if pid == 0:
            break
        door.send(str(pid).encode())
        for stream in streams:
            os.close(stream)
    door.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return Order(**json.loads(order))


def fork_sibling() -> int:
    """As os.fork, but the new process is a child of our parent."""
    system = ctypes.PyDLL(None)  # it keeps the interpreter's lock
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = system.syscall(CLONE_NUMBERS[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError("the system forks no process")
    return pid


def let_streams_go() -> None:
    """A server keeps no pipe open that somebody reads to its end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)


def run(order: Order) -> None:
    """Run the program as `python` does, in the folder and with the environment of the order; end as it ends."""
    if order.has_own_session:
        os.setsid()
    for number in SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in order.ignored else usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, order.blocked)
    for number, limit in enumerate(order.limits):
        resource.setrlimit(number, tuple(limit))
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.argv = [order.program, *order.arguments]
    if os.path.isabs(order.program):
        sys.path[0] = os.path.dirname(order.program)
        runpy.run_path(order.program, run_name="__main__")
    else:
        sys.path[0] = os.getcwd()
        runpy.run_module(order.program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))

"""A process that has imported hubweir, and forks itself for its parent: `python -m tests.fork_server.server DOOR`.

Modules that are named before the door are imported as well.

Imports are nine tenths of what a start of hubweir costs the processor, and a run of the tests starts a thousand
processes of it. A forked one has them, and then does what `python -m hubweir …` does. Nothing but imports has happened
in the process that is forked: it has one thread, holds no lock and has no file open, so that rule R14 is kept.

What is forked becomes a child of the parent, as if the parent had started it: that is CLONE_PARENT of clone(2). A
supervisor starts processes, too, so it gets a server of its own, which is forked before it does anything. A server ends
when nobody has the other end of its door any more.

An order is a message with four descriptors: the three streams of the new process, and a socket. The forked process
writes its id there when it is as ordered, and then begins with the program; without an answer there is no process.
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
import time
from collections.abc import Sequence
from types import ModuleType

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


def main(door: socket.socket, imported: Sequence[str] = ()) -> None:
    """Import, these modules as well, then fork for each order. A forked process goes on as the program asked for."""
    for name in (*IMPORTED, *imported):
        importlib.import_module(name)
    for name in PROGRAMS:
        package, _, module = name.rpartition(".")
        del sys.modules[name]
        delattr(sys.modules[package], module)  # or `from hubweir.service import …` finds it there
    gc.freeze()  # of all this a collection frees nothing, and would have each process copy it
    run(forked(door))


def forked(door: socket.socket) -> Order:
    """The order of the process that is forked for it, where this returns. A supervisor has a server of its own then."""
    order = next_order(door)
    if not order.is_supervisor:
        return order
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        ForkedPopen.server = ForkServer(lambda: ours, order.environment)
        subprocess.Popen = ForkedPopen
        return order
    ours.close()
    let_go()
    return forked(theirs)


def next_order(door: socket.socket) -> Order:
    """As `forked`, without a server. The process that is forked stays here until nobody can ask it any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    while True:
        message, descriptors, _, _ = socket.recv_fds(door, MOST_BYTES, 4)
        if not message:
            sys.exit()
        if fork_sibling() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    door.close()
    *streams, answer = descriptors
    try:
        order = Order(**json.loads(message))
        become(order, streams)
        os.write(answer, str(os.getpid()).encode())
    except (OSError, ValueError):
        os._exit(1)  # without an answer the program is started anew, or nobody hears one any more
    os.close(answer)
    return order


def fork_sibling() -> int:
    """As os.fork, but the new process is a child of our parent; below zero, the system forks none."""
    system = ctypes.PyDLL(None)  # it keeps the interpreter's lock
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = system.syscall(CLONE_NUMBERS[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def let_go() -> None:
    """A server keeps no pipe open that somebody reads to its end, and no disk in use that somebody unmounts."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    os.chdir(os.sep)


def become(order: Order, streams: Sequence[int]) -> None:
    """Be as a process that is started for the order. OSError, ValueError: the system does not let it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
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
    from hubweir.service import scrape  # the server has imported it by now

    scrape._BEGAN_S = time.time()  # it alone, of all modules of hubweir, keeps the time of its import


def run(order: Order) -> None:
    """Run the program as `python` does; end as it ends."""
    sys.argv = ["-c" if order.is_text else order.program, *order.arguments]
    if order.is_text:
        sys.path[0] = ""
        sys.modules["__main__"] = main_module = ModuleType("__main__")
        exec(compile(order.program, "<string>", "exec", dont_inherit=True), vars(main_module))
    elif os.path.isabs(order.program):
        sys.path[0] = os.path.dirname(order.program)
        runpy.run_path(order.program, run_name="__main__")
    else:
        sys.path[0] = os.getcwd()
        runpy.run_module(order.program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _, *modules, number = sys.argv
    main(socket.socket(fileno=int(number)), modules)

"""A cable between two network namespaces, carried by a process of its own: a TUN device at each end, packets between.

It does what the kernel's netem does, on kernels without it too, and needs neither iptables nor tc: root, `ip` and
/dev/net/tun. TCP at both ends is the kernel's own. Linux; `python -m tests.crash.cable NAMESPACE NAMESPACE SEED` is the
process: it takes a line of JSON on its input for each change, {"there": {"loss": 0.05}, "back": {}}, and answers with
its counts.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from tests.crash.packet_faults import NONE, Direction, Faults

ROOT = Path(__file__).resolve().parents[2]
NEWNET = 0x4000_0000  # of setns(2)
SET_DEVICE = 0x4004_54CA  # TUNSETIFF of <linux/if_tun.h>
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
DEVICE = "cable"
ADDRESSES = ("10.119.0.1", "10.119.0.2")  # of the namespaces, which nobody else reaches
PACKET_BYTES = 2048
START_S = 60.0


def why_not() -> str | None:
    """What this machine lacks; None: nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "they need root on Linux"
    if shutil.which("ip") is None or not os.path.exists("/dev/net/tun"):
        return "they need ip (iproute2) and /dev/net/tun"
    try:
        with entered(None):
            pass
        _ip("netns", "list")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"this user may make no network namespaces: {error}"
    return None


@contextmanager
def entered(namespace: str | None) -> Iterator[None]:
    """This thread, and the threads and processes that it starts, are in a namespace. None: a new one without a name."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if namespace is None:
            _called(libc.unshare(NEWNET))
        else:
            there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
            try:
                _called(libc.setns(there, NEWNET))
            finally:
                os.close(there)
        yield
    finally:
        _called(libc.setns(before, NEWNET))
        os.close(before)


class Cable:
    """Two namespaces, `server` at ADDRESSES[0] and `client` at ADDRESSES[1], and the cable. A context manager."""

    def __init__(self, seed: int) -> None:
        self.server, self.client = f"hubweir-{os.getpid()}-s", f"hubweir-{os.getpid()}-c"
        self.host = ADDRESSES[0]
        self._seed = seed
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Cable:
        try:
            for name in (self.server, self.client):
                _ip("netns", "add", name)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.cable", self.server, self.client, str(self._seed)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            )  # fmt: skip
            self.be()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        for name in (self.server, self.client):
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)

    def be(self, *, there: Faults = NONE, back: Faults = NONE) -> dict[str, dict[str, int]]:
        """From now on packets to the server, and those back, meet these; what packets met so far, by direction."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"there": asdict(there), "back": asdict(back)}) + "\n")
        process.stdin.flush()
        readable, _, _ = select.select([process.stdout], [], [], START_S)
        counts: dict[str, dict[str, int]] = json.loads(process.stdout.readline() if readable else "null")
        assert counts, "the cable does not answer"
        return counts

    def pull(self, *, out: bool) -> None:
        """Take the client's end out, as a link that is down, or put it in again."""
        _ip("-n", self.client, "link", "set", DEVICE, "down" if out else "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _called(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


# The process


def _end_in(namespace: str, mine: str, other: str) -> int:
    """The descriptor of a device in a namespace that is up, with the address `mine`."""
    with entered(namespace):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, SET_DEVICE, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for words in (
        ("addr", "add", mine, "peer", other, "dev", DEVICE), ("link", "set", DEVICE, "up"), ("link", "set", "lo", "up")
    ):  # fmt: skip
        _ip("-n", namespace, *words)
    return device


def _carry(server: int, client: int, seed: int) -> None:
    """Carry packets until the input ends."""
    there, back = Direction(seed), Direction(seed + 1)
    ways = {client: (there, server), server: (back, client)}
    while True:
        now = time.monotonic()
        waits = [direction.next_at for direction in (there, back) if direction.next_at is not None]
        timeout = max(0.0, min(waits) - now) if waits else None
        readable, _, _ = select.select([sys.stdin, *ways], [], [], timeout)
        for device, (direction, _) in ways.items():
            if device in readable and (packet := _packet_of(device)) is not None:
                answer = direction.take(packet, time.monotonic())
                if answer is not None:
                    _write(device, answer)
        now = time.monotonic()
        for direction, out in ways.values():
            for packet in direction.due(now):
                _write(out, packet)
        if sys.stdin in readable:
            line = sys.stdin.readline()
            if not line:
                return
            wanted = json.loads(line)
            there.faults, back.faults = Faults(**wanted["there"]), Faults(**wanted["back"])
            print(json.dumps({"there": there.counts, "back": back.counts}), flush=True)


def _packet_of(device: int) -> bytes | None:
    """A packet; None: there is none, or the device is down."""
    try:
        return os.read(device, PACKET_BYTES)
    except OSError:
        return None


def _write(device: int, packet: bytes) -> None:
    with suppress(OSError):  # the device is down: the packet is lost
        os.write(device, packet)


if __name__ == "__main__":
    ends = [_end_in(sys.argv[1], *ADDRESSES), _end_in(sys.argv[2], *reversed(ADDRESSES))]
    _carry(ends[0], ends[1], int(sys.argv[3]))

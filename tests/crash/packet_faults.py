"""What a bad network does to the packets of one direction: it loses, delays, reorders, doubles, queues and resets them.

Pure: packets and times come in, packets and the times at which they are due come out. The cable between two network
namespaces (cable.py) has two of these. Each packet is a whole IPv4 packet.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from heapq import heappop, heappush

TCP = 6
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
QUEUE_BYTES = 128 * 1024  # what waits for a slow line; a packet more is lost, as at a router


@dataclass(frozen=True, slots=True)
class Faults:
    """loss, doubled: share of the packets. delay_ms, and up to jitter_ms more for each packet, so that packets overtake
    each other. rate_bytes_s: 0 is as fast as it goes. resets: every connection that sends is reset at the other end;
    tells_sender: and at the sender's, which would learn of it late.
    """

    loss: float = 0.0
    doubled: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    rate_bytes_s: int = 0
    resets: bool = False
    tells_sender: bool = False


NONE, CUT = Faults(), Faults(loss=1.0)


class Direction:
    """One direction of a cable. counts: how many packets met what, so that a test can ask."""

    def __init__(self, seed: int) -> None:
        self.faults = NONE
        self.counts = {"passed": 0, "lost": 0, "late": 0, "overtaken": 0, "doubled": 0, "reset": 0}
        self._random = random.Random(seed)
        self._waiting: list[tuple[float, int, bytes]] = []  # a heap: when it is due, its number, the packet
        self._waiting_bytes = 0
        self._number = self._newest = 0
        self._free_at = 0.0

    def take(self, packet: bytes, now: float) -> bytes | None:
        """A packet enters at this time, in seconds; what its sender gets at once, None: nothing."""
        faults, answer = self.faults, None
        if faults.loss and self._random.random() < faults.loss:
            self.counts["lost"] += 1
            return None
        if faults.resets and is_reset(packet):
            self.counts["reset"] += 1
            answer = reset_of(packet, to_sender=True) if faults.tells_sender else None
            packet = reset_of(packet)
        if faults.rate_bytes_s and self._waiting_bytes + len(packet) > QUEUE_BYTES:
            self.counts["lost"] += 1
            return answer
        self._wait(packet, now)
        if faults.doubled and self._random.random() < faults.doubled:
            self.counts["doubled"] += 1
            self._wait(packet, now)
        return answer

    def due(self, now: float) -> list[bytes]:
        """The packets that leave by this time, in their order."""
        packets = []
        while self._waiting and self._waiting[0][0] <= now:
            _, number, packet = heappop(self._waiting)
            self._waiting_bytes -= len(packet)
            self.counts["passed"] += 1
            self.counts["overtaken"] += number < self._newest
            self._newest = max(self._newest, number)
            packets.append(packet)
        return packets

    @property
    def next_at(self) -> float | None:
        """When the next packet is due; None: there is none."""
        return self._waiting[0][0] if self._waiting else None

    def _wait(self, packet: bytes, now: float) -> None:
        faults, at = self.faults, now
        if faults.rate_bytes_s:
            self._free_at = at = max(now, self._free_at) + len(packet) / faults.rate_bytes_s
        at += (faults.delay_ms + self._random.random() * faults.jitter_ms) / 1_000
        self.counts["late"] += at > now
        self._number += 1
        self._waiting_bytes += len(packet)
        heappush(self._waiting, (at, self._number, packet))


def is_reset(packet: bytes) -> bool:
    """Whether a reset takes it: a packet of TCP that neither opens a connection nor ends one."""
    return packet[0] >> 4 == 4 and packet[9] == TCP and not packet[(packet[0] & 0x0F) * 4 + 13] & (SYN | RST)


def reset_of(packet: bytes, *, to_sender: bool = False) -> bytes:
    """A packet that resets the connection of this one, at the other end or at the sender's."""
    head = (packet[0] & 0x0F) * 4
    source, destination, sequence, acknowledged = struct.unpack_from(">HHII", packet, head)
    ends = packet[12:20]
    if to_sender:
        source, destination, sequence, acknowledged = destination, source, acknowledged, sequence
        ends = ends[4:] + ends[:4]
    tcp = bytearray(struct.pack(">HHIIBBHHH", source, destination, sequence, acknowledged, 5 << 4, RST | ACK, 0, 0, 0))
    struct.pack_into(">H", tcp, 16, _checksum(ends + struct.pack(">BBH", 0, TCP, len(tcp)) + tcp))
    ip = bytearray(packet[:12] + ends)
    ip[0] = 0x45
    struct.pack_into(">H", ip, 2, len(ip) + len(tcp))
    struct.pack_into(">H", ip, 10, 0)
    struct.pack_into(">H", ip, 10, _checksum(ip))
    return bytes(ip + tcp)


def _checksum(data: bytes | bytearray) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

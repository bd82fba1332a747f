"""The cable of the network faults does to packets what it says, no more."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.crash.cable import Cable, entered, why_not
from tests.crash.packet_faults import ACK, CUT, NONE, QUEUE_BYTES, RST, SYN, Direction, Faults, is_reset, reset_of

COUNT = 2_000
PATIENCE_S = 30.0  # a way that is sound, on a machine that is busy


def packet(flags: int = ACK, data: bytes = b"data") -> bytes:
    """From 1.1.1.1 to 2.2.2.2; its checksums say nothing."""
    ip = bytes([0x45, 0, *(40 + len(data)).to_bytes(2, "big"), 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    tcp = bytes([0, 80, 0, 81, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0])
    return ip + tcp + data


def numbered(count: int = COUNT) -> list[bytes]:
    return [packet(data=number.to_bytes(4, "big")) for number in range(count)]


def passed(faults: Faults, packets: list[bytes]) -> tuple[list[bytes], Direction]:
    """What leaves in the end of packets that enter one a millisecond."""
    direction = Direction(1)
    direction.faults = faults
    left = []
    for number, each in enumerate(packets):
        direction.take(each, number / 1_000)
        left += direction.due(number / 1_000)
    return left + direction.due(1e9), direction


def test_a_good_network_passes_everything_at_once_and_in_order() -> None:
    direction = Direction(1)
    for each in numbered(10):
        direction.take(each, 5.0)
        assert direction.due(5.0) == [each]
    assert direction.next_at is None and direction.counts["passed"] == 10


def test_a_cut_one_passes_nothing() -> None:
    left, direction = passed(CUT, numbered())
    assert left == [] and direction.counts["lost"] == COUNT


def test_so_many_are_lost_as_was_asked_for_and_the_others_keep_their_order() -> None:
    packets = numbered()
    left, direction = passed(Faults(loss=0.05), packets)
    assert 0.03 < direction.counts["lost"] / COUNT < 0.07
    assert left == [each for each in packets if each in set(left)]


def test_a_delay_is_as_long_as_was_asked_for() -> None:
    direction = Direction(1)
    direction.faults = Faults(delay_ms=40.0)
    direction.take(packet(), 1.0)
    assert direction.due(1.039) == [] and direction.next_at == pytest.approx(1.04)
    assert len(direction.due(1.0401)) == 1


def test_packets_overtake_each_other_and_none_is_lost() -> None:
    packets = numbered()
    left, direction = passed(Faults(jitter_ms=30.0), packets)
    assert left != packets and sorted(left) == packets
    assert direction.counts["overtaken"] > COUNT / 2


def test_some_come_twice() -> None:
    left, direction = passed(Faults(doubled=0.02), numbered())
    assert len(left) == COUNT + direction.counts["doubled"] and 10 < direction.counts["doubled"] < 100


def test_a_slow_network_takes_its_time_and_loses_what_finds_no_place() -> None:
    direction = Direction(1)
    direction.faults = Faults(rate_bytes_s=10_000)
    large = packet(data=bytes(960))
    for _ in range(200):
        direction.take(large, 0.0)
    kept = QUEUE_BYTES // len(large)
    assert direction.counts["lost"] == 200 - kept
    assert len(direction.due(1.0)) == 10


@pytest.mark.parametrize("to_sender", [False, True])
def test_a_packet_becomes_a_reset_of_its_connection_with_good_checksums(to_sender: bool) -> None:
    reset = reset_of(packet(data=b"some data"), to_sender=to_sender)
    assert len(reset) == 40 and reset[33] & RST
    ends = packet()[16:20] + packet()[12:16] if to_sender else packet()[12:20]
    assert reset[12:20] == ends
    assert reset[20:32] == (bytes([0, 81, 0, 80, 0, 0, 0, 9, 0, 0, 0, 7]) if to_sender else packet()[20:32])
    for summed in (reset[:20], reset[12:20] + bytes([0, 6, 0, 20]) + reset[20:]):
        total = sum(int.from_bytes(summed[at : at + 2], "big") for at in range(0, len(summed), 2))
        assert total % 0xFFFF == 0


def test_only_connections_that_are_there_are_reset() -> None:
    assert is_reset(packet())
    assert not is_reset(packet(SYN)) and not is_reset(packet(RST))
    assert not is_reset(packet()[:9] + b"\x11" + packet()[10:])  # of UDP
    direction = Direction(1)
    direction.faults = Faults(resets=True)
    assert direction.take(packet(), 0.0) is None
    direction.faults = Faults(resets=True, tells_sender=True)
    assert direction.take(packet(), 0.0) == reset_of(packet(), to_sender=True)
    assert direction.due(0.0) == [reset_of(packet())] * 2


# The cable itself, between two namespaces of the kernel


@contextmanager
def connected(cable: Cable) -> Iterator[socket.socket]:
    """A connection to a server that sends back what it gets."""
    with entered(cable.server):
        listener = socket.create_server((cable.host, 0))
    listener.settimeout(PATIENCE_S)

    def echo() -> None:
        end, _ = listener.accept()
        with end:
            end.settimeout(PATIENCE_S)
            try:
                while data := end.recv(65536):
                    end.sendall(data)
            except OSError:
                pass  # it was reset

    thread = threading.Thread(target=echo)
    thread.start()
    with listener:
        with entered(cable.client):
            made = socket.create_connection(listener.getsockname(), timeout=PATIENCE_S)
        with made:
            yield made
        thread.join(PATIENCE_S)


@pytest.fixture(scope="module")
def cable() -> Iterator[Cable]:
    reason = why_not()
    if reason is not None:
        pytest.skip(f"network faults NOT TESTED: {reason}")
    with Cable(1) as joined:
        yield joined


def echoed_s(end: socket.socket, began: float | None = None) -> float:
    """How long five bytes take there and back, from now on or from an earlier time on."""
    began = time.monotonic() if began is None else began
    end.sendall(b"again")
    left = 5
    while left:
        left -= len(end.recv(left))
    return time.monotonic() - began


def test_what_is_sent_through_a_bad_network_arrives_whole(cable: Cable) -> None:
    sent = bytes(range(256)) * 400
    with connected(cable) as end:
        cable.be(there=Faults(loss=0.02, jitter_ms=2.0), back=Faults(doubled=0.1))
        thread = threading.Thread(target=end.sendall, args=(sent,))
        thread.start()
        got = b""
        while len(got) < len(sent):
            got += end.recv(65536)
        thread.join(PATIENCE_S)
        cable.be()
    assert got == sent


@pytest.mark.parametrize("ways", [{"there": CUT}, {"back": CUT}, {"there": CUT, "back": CUT}])
def test_a_connection_outlives_a_cut(cable: Cable, ways: dict[str, Faults]) -> None:
    with connected(cable) as end:
        cable.be(**ways)
        began, healing = time.monotonic(), threading.Timer(1.0, cable.be)
        healing.start()
        assert 1.0 < echoed_s(end, began) < PATIENCE_S
        healing.join()


def test_a_link_goes_down_and_up(cable: Cable) -> None:
    with connected(cable) as end:
        cable.pull(out=True)
        began, healing = time.monotonic(), threading.Timer(1.0, lambda: cable.pull(out=False))
        healing.start()
        assert 1.0 < echoed_s(end, began) < PATIENCE_S
        healing.join()


def test_connections_are_reset_and_new_ones_are_made(cable: Cable) -> None:
    with connected(cable) as end:
        assert echoed_s(end) < PATIENCE_S
        cable.be(there=Faults(resets=True, tells_sender=True), back=NONE)
        end.sendall(b"reset")
        with pytest.raises(ConnectionResetError):
            end.recv(5)
        cable.be()
    with connected(cable) as end:
        before = cable.be(there=Faults(resets=True))["there"]["reset"]
        end.sendall(b"reset")
        limit = time.monotonic() + PATIENCE_S
        while cable.be(there=Faults(resets=True))["there"]["reset"] == before:
            assert time.monotonic() < limit
            time.sleep(0.01)
        cable.be()  # the sender learns of it by what it sends now
        with pytest.raises(ConnectionResetError):
            echoed_s(end)
    with connected(cable) as end:
        assert echoed_s(end) < PATIENCE_S

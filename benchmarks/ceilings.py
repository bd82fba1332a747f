"""What this machine allows at the moment: bytes a second of memcpy and of one loopback TCP stream.

Measured in the same run as what is held against them, because a shared machine changes from minute to minute.
"""

from __future__ import annotations

import multiprocessing
import socket
import time

_COPY_BYTES = 64 * 1024 * 1024
_STREAM_BYTES = 1024 * 1024 * 1024
_CALL_BYTES = 256 * 1024


def memcpy_bytes_per_second() -> float:
    """Best of five copies of 64 MiB, memory to memory."""
    source, target = bytearray(_COPY_BYTES), bytearray(_COPY_BYTES)
    best = 0.0
    for _ in range(5):
        begun = time.perf_counter()
        target[:] = source
        best = max(best, _COPY_BYTES / (time.perf_counter() - begun))
    return best


def loopback_bytes_per_second() -> float:
    """One GiB through one TCP connection of 127.0.0.1 in calls of 256 KiB, sender in its own process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = multiprocessing.Process(target=_send, args=(listener.getsockname()[1],))
        sender.start()
        try:
            listener.settimeout(10)
            stream, _ = listener.accept()
            with stream:
                stream.settimeout(10)
                buffer = bytearray(_CALL_BYTES)
                begun, received = time.perf_counter(), 0
                while received < _STREAM_BYTES and (size := stream.recv_into(buffer)):
                    received += size
                return received / (time.perf_counter() - begun)
        finally:
            sender.join(10)


def _send(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as stream:
        piece = bytes(_CALL_BYTES)
        for _ in range(_STREAM_BYTES // _CALL_BYTES):
            stream.sendall(piece)

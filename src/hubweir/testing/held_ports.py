"""Free ports of this machine, kept for a server that is killed and started again, or for nobody at all."""

from __future__ import annotations

import os
import socket
import sys
import weakref


class HeldPorts:
    """Ports that were free, all different. As long as this object lives, Linux gives none of them to anybody else.

    Each has a socket that is bound and does not listen: who connects is refused, and a server that sets SO_REUSEADDR
    listens beside it, as often as it is started. Other systems let no server listen there then, so nothing keeps a
    port: it was free a moment ago.
    """

    def __init__(self, count: int = 1, host: str = "127.0.0.1") -> None:
        """OSError: host is no address of this machine."""
        sockets: list[socket.socket] = []
        try:
            for _ in range(count):
                held = socket.socket()
                sockets.append(held)
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind((host, 0))
            self.numbers: list[int] = [held.getsockname()[1] for held in sockets]
            if sys.platform == "linux":
                for held in sockets:
                    weakref.finalize(self, os.close, held.detach())
        finally:
            for held in sockets:
                held.close()

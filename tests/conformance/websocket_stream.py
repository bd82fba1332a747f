"""The bytes of a scripted client inside WebSocket messages, by a library that is not ours, cut wherever a test says."""

from __future__ import annotations

import ssl

from websocket import WebSocket, WebSocketConnectionClosedException, WebSocketTimeoutException, create_connection

WAIT_S = 30.0


class WebSocketStream:
    """Stands where a RawClient's socket would."""

    def __init__(
        self, url: str, *, protocol: str = "AMQPWSB10", cut: int = 0, ca_file: str = "", certificate: str = ""
    ) -> None:
        """cut: bytes of a message; 0: one message for each call of sendall. certificate: the client's, with its key."""
        trust = {"context": ssl.create_default_context(cafile=ca_file)} if ca_file else None
        if trust is not None and certificate:
            trust["context"].load_cert_chain(certificate)
        self.socket: WebSocket = create_connection(url, timeout=WAIT_S, subprotocols=[protocol], sslopt=trust)
        self._cut = cut

    @property
    def protocol(self) -> str | None:
        """The sub-protocol that the server echoed."""
        headers = self.socket.getheaders() or {}  # the library's own answer is in lower case
        return headers.get("sec-websocket-protocol")  # type: ignore[no-any-return]  # the library has no types

    def sendall(self, data: bytes) -> None:
        step = self._cut or len(data)
        for at in range(0, len(data), step):
            self.socket.send_binary(data[at : at + step])

    def recv(self, size: int) -> bytes:
        """One message, whatever its size, as socket.recv would give it; empty at the end."""
        try:
            data = self.socket.recv()
        except WebSocketTimeoutException:
            raise TimeoutError from None
        except WebSocketConnectionClosedException:
            return b""
        assert isinstance(data, bytes), "the server sent text"
        return data

    def settimeout(self, seconds: float) -> None:
        self.socket.settimeout(seconds)

    def close(self) -> None:
        self.socket.close(timeout=1)

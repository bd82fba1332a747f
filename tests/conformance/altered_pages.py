"""A way to a live service's management over HTTPS on which what the service says is altered.

The same as altered_answers.py is for AMQP: to show what a client makes of other answers.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from hubweir.testing.running_namespace import RunningNamespace

ANSWER_S = 30.0
HOP = frozenset({"content-length", "transfer-encoding", "connection"})  # headers that this way says for itself


class AlteredPages:
    """A port of this machine in front of a namespace's, with its certificate. A context manager."""

    def __init__(self, namespace: RunningNamespace, alter: Callable[[bytes], bytes]) -> None:
        """alter: takes the body of an answer and returns the one that the client gets."""
        files = namespace.parts.certificate
        service, trust = (namespace.host, namespace.port), ssl.create_default_context(cafile=files.ca)

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = http.client.HTTPSConnection(*service, context=trust, timeout=ANSWER_S)
                asked.request("GET", self.path, headers=dict(self.headers))
                answer = asked.getresponse()
                body = alter(answer.read())
                asked.close()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """The test says what there is to say."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        self._server = ThreadingHTTPServer((namespace.host, 0), Page)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> AlteredPages:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(ANSWER_S)

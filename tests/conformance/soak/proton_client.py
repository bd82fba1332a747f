"""python-qpid-proton over many minutes, with its own reactor. What it does is task.py.

`key` proves its rights by SASL PLAIN; `token` puts tokens to $cbs itself, over a pair of links that it attaches once.
The service detaches an idle sender after a while, as it does for any client: this one then attaches another to send.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from proton import Message, SSLDomain
from proton.handlers import MessagingHandler
from proton.reactor import Container

from tests.conformance.soak.task import (
    CA_FILE,
    EVERY_S,
    HOST,
    HUB,
    KEY,
    PARTITIONS,
    PORT,
    RULE,
    TOKEN_S,
    Check,
    left_s,
    signature,
    watch,
)

DETACH_FORCED = "amqp:link:detach-forced"
# When a tenth of the token's time is left, as the official client in Python.
RENEW_S = 0.9 * TOKEN_S


class Life(MessagingHandler):  # type: ignore[misc]  # the library has no types
    """One connection: its links, its events, its tokens."""

    def __init__(self, check: Check, way: str, *, is_busy: bool) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self.check, self.way, self.is_busy = check, way, is_busy
        self.partition = PARTITIONS[way][0 if is_busy else 1]
        self.sent: list[str] = []
        self.got: list[str] = []
        self.tokens = self.looks = 0
        self.sender: Any = None
        self.unsent: list[str] = []

    def on_start(self, event: Any) -> None:
        self.container = event.container
        if self.way == "key":
            where, proof = f"amqp://{HOST}:{PORT}", {"user": RULE, "password": KEY, "allowed_mechs": "PLAIN"}
            proof["allow_insecure_mechs"] = True  # type: ignore[assignment]
        else:
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(CA_FILE)
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
            where, proof = f"amqps://{HOST}:5671", {"ssl_domain": domain, "allowed_mechs": "ANONYMOUS"}  # type: ignore[dict-item]
        self.connection = self.container.connect(where, reconnect=False, sasl_enabled=True, **proof)
        self.management = self.pair("$management")
        if self.way == "token":
            self.cbs = self.pair("$cbs")
            self.put_token()
        else:
            self.use_links()

    def pair(self, node: str) -> Any:
        answers = self.container.create_receiver(self.connection, node, target=f"answers of {node}", name=f"{node} in")
        answers.flow(1_000)
        return self.container.create_sender(self.connection, node, name=f"{node} out")

    def put_token(self) -> None:
        token, _ = signature()
        named = {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": f"sb://{HOST}/{HUB}"}
        request = Message(body=token, properties=named, id="token", reply_to="answers of $cbs")
        self.check.step("put a token")
        self.cbs.send(request)

    def look(self) -> None:
        named = {"operation": "READ", "type": "com.microsoft:eventhub", "name": HUB}
        self.check.step("read the hub's properties")
        self.management.send(Message(properties=named, id="hub", reply_to="answers of $management"))

    def use_links(self) -> None:
        """Rights are proved: read, and send the first event."""
        address = f"{HUB}/ConsumerGroups/$Default/Partitions/{self.partition}"
        self.reader = self.container.create_receiver(self.connection, address, name="events")
        self.reader.flow(100_000)
        self.look()

    def send_next(self) -> None:
        body = f"event {len(self.sent)}"
        self.sent.append(body)
        self.unsent.append(body)
        self.check.step("send")
        if self.sender is None:
            self.sender = self.container.create_sender(self.connection, f"{HUB}/Partitions/{self.partition}")
        self.on_sendable(None)

    def on_sendable(self, event: Any) -> None:
        while self.unsent and self.sender is not None and self.sender.credit:
            self.sender.send(Message(body=self.unsent.pop(0)))

    def on_message(self, event: Any) -> None:
        name, message = event.receiver.name, event.message
        if name == "events":
            self.got.append(message.body)
            if self.got != self.sent:
                self.end(f"{len(self.got)} events came of {len(self.sent)}")
            elif left_s() and self.is_busy:
                self.rest(EVERY_S, self.send_next if len(self.sent) % 12 else self.look)
            elif left_s():
                self.rest(left_s() + 0.1, self.look)
            else:
                self.end("" if self.way == "key" or self.tokens >= 3 else f"{self.tokens} tokens were put")
            return
        code = message.properties["status-code"]
        if code not in (200, 202):
            self.end(f"{name} said {code}: {message.properties['status-description']}")
        elif name == "$cbs in":
            self.tokens += 1
            self.container.schedule(RENEW_S, Due(self.put_token))
            if self.tokens == 1:
                self.use_links()
            else:
                self.check.rest(EVERY_S if self.is_busy else left_s())
        else:
            self.looks += 1
            self.send_next()

    def rest(self, seconds: float, then: Any) -> None:
        self.check.rest(seconds)
        self.container.schedule(seconds, Due(then))

    def on_link_error(self, event: Any) -> None:
        condition = event.link.remote_condition
        if self.is_sender(event.link) and condition.name == DETACH_FORCED and not self.is_busy:
            self.sender = None
        else:
            self.end(f"the link {event.link.name} was detached: {condition}")

    def is_sender(self, link: Any) -> bool:
        """The library wraps a link anew for each event."""
        return self.sender is not None and link.name == self.sender.name

    def on_link_closing(self, event: Any) -> None:
        self.on_link_error(event)

    def on_connection_closing(self, event: Any) -> None:
        self.end(f"the connection was closed: {event.connection.remote_condition}")

    def on_transport_error(self, event: Any) -> None:
        self.end(f"the transport failed: {event.transport.condition}")

    def on_disconnected(self, event: Any) -> None:
        self.end("the connection is gone")

    def on_rejected(self, event: Any) -> None:
        self.end(f"a delivery was rejected: {event.delivery.remote.condition}")

    def end(self, problem: str) -> None:
        self.check.end(problem)
        self.container.stop()


class Due(MessagingHandler):  # type: ignore[misc]
    """Calls something when its time has come."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call

    def on_timer_task(self, event: Any) -> None:
        self._call()


def live(check: Check, way: str, is_busy: bool) -> None:
    try:
        Container(Life(check, way, is_busy=is_busy)).run()
        check.end("the reactor ended")
    except Exception as error:
        check.end(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    ways = [(way, is_busy) for way in PARTITIONS for is_busy in (True, False)]
    checks = [Check(f"{way}_{'busy' if is_busy else 'idle'}") for way, is_busy in ways]
    for check, (way, is_busy) in zip(checks, ways, strict=True):
        threading.Thread(target=live, args=(check, way, is_busy), daemon=True).start()
    watch(checks)
    os._exit(0)

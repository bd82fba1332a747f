"""What test control asks of a service: method, path and body of each order, and what comes back."""

from __future__ import annotations

import json
from typing import Any

from hubweir.client.administration import Administration
from hubweir.client.namespace_control import NamespaceControl
from hubweir.namespace.connection_string import ConnectionString

STATE = {"clock": {"now_ms": 1, "ahead_ms": 2}, "faults": None}


class Asked(Administration):
    """Answers each request with STATE, and keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(ConnectionString("localhost"))
        self.asked: list[tuple[str, str, Any]] = []

    def request(
        self, method: str, path: str, body: bytes, *, media_type: str, query: str = "", changes: bool = False,
        entity: str = "",
    ) -> bytes:  # fmt: skip
        assert media_type == "application/json" and not (query or changes or entity)
        self.asked.append((method, path, json.loads(body) if body else None))
        return json.dumps(STATE).encode()


def test_each_order_is_one_request_and_answers_the_state() -> None:
    asked = Asked()
    control = NamespaceControl(asked)
    for answer in (
        control.state(), control.forward_clock(90_000), control.forward_clock(1, ends_tokens=True),
        control.order_faults(server_busy=0.1, delay=0.2, delay_ms=5, detach=0.3, drop=0.4, seed=7),
        control.order_faults(), control.end_faults(),
    ):  # fmt: skip
        assert answer == STATE
    given = {"server_busy": 0.1, "delay": 0.2, "delay_ms": 5, "detach": 0.3, "drop": 0.4, "seed": 7}
    usual = {"server_busy": 0, "delay": 0, "delay_ms": 1_000, "detach": 0, "drop": 0, "seed": None}
    assert asked.asked == [
        ("GET", "$testcontrol", None),
        ("POST", "$testcontrol/clock", {"forward_ms": 90_000, "ends_tokens": False}),
        ("POST", "$testcontrol/clock", {"forward_ms": 1, "ends_tokens": True}),
        ("PUT", "$testcontrol/faults", given),
        ("PUT", "$testcontrol/faults", usual),
        ("DELETE", "$testcontrol/faults", None),
    ]

"""Test control of a development namespace: its clock, and faults to order (docs/testing.md).

    control = NamespaceControl(Administration(ConnectionString.parse(text)))
    control.forward_clock(3_600_000)
    control.order_faults(server_busy=0.1, seed=7)

Calls block. Each raises ServiceError, whose text says why: the namespace is not for development, the token has not
the right to manage, the supervisor of several processes is away.
"""

from __future__ import annotations

import json
from typing import Any

from hubweir.client.administration import Administration

_PATH = "$testcontrol"


class NamespaceControl:
    """See the module's text. Every method answers the state after it, as docs/testing.md says."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    def state(self) -> dict[str, Any]:
        """The clock, and the faults that strike now."""
        return self._ask("GET", _PATH)

    def forward_clock(self, by_ms: int, *, ends_tokens: bool = False) -> dict[str, Any]:
        """Let time pass for the service; what is due by then has happened, or begun, when this returns.

        ends_tokens: tokens end by it, too. Else they stay good, as those of a client that renews them in time.
        """
        return self._ask("POST", f"{_PATH}/clock", {"forward_ms": by_ms, "ends_tokens": ends_tokens})

    def order_faults(
        self,
        *,
        server_busy: float = 0,
        delay: float = 0,
        delay_ms: int = 1_000,
        detach: float = 0,
        drop: float = 0,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Let faults strike by these rates, in the place of those before. seed None: the service draws one."""
        order = {"server_busy": server_busy, "delay": delay, "delay_ms": delay_ms, "detach": detach, "drop": drop}
        return self._ask("PUT", f"{_PATH}/faults", {**order, "seed": seed})

    def end_faults(self) -> dict[str, Any]:
        """Let no fault strike any more."""
        return self._ask("DELETE", f"{_PATH}/faults")

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        found = json.loads(self._administration.request(method, path, data, media_type="application/json"))
        assert isinstance(found, dict)
        return found

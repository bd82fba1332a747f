"""What every program of the soak does, and what those in Python share.

A program opens its client in two ways: `key`, by a connection string and with default settings throughout, and `token`,
over TLS with a credential of its own whose tokens hold HUBWEIR_TOKEN_S, so that the client renews them at its own pace.
Either way it is busy on one partition, where it sends an event every few seconds and reads it, and idle on another,
where it sends one event, waits until the time is over, and sends another. It prints a line for each check:

| check                     | holds when                                                                             |
|---------------------------|----------------------------------------------------------------------------------------|
| key_busy, token_busy      | every send was accepted and every event was read, in time, and no error was heard      |
| key_idle, token_idle      | the same for the two events; runtime information is read at the beginning and the end  |
| tokens_renewed            | each connection that the client keeps has put two more tokens after its first          |

A step that takes longer than STEP_S is one that waits without end: its check fails with the step's name and time.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable

from hubweir.auth.shared_access_signature import make_token

SOAK_S = float(os.environ.get("HUBWEIR_SOAK_S", "0"))
TOKEN_S = int(os.environ.get("HUBWEIR_TOKEN_S", "0"))
HOST, PLAIN = os.environ.get("HUBWEIR_HOST", ""), os.environ.get("HUBWEIR_PLAIN", "")
PORT = int(os.environ.get("HUBWEIR_PORT", "0"))
HUB, CA_FILE = os.environ.get("HUBWEIR_HUB", ""), os.environ.get("HUBWEIR_CA_FILE", "")
RULE, KEY = os.environ.get("HUBWEIR_RULE", ""), os.environ.get("HUBWEIR_KEY", "")
EVERY_S, LOOK_S = 5.0, 60.0  # between two events, and two looks at the properties
# Clients wait a minute for an answer by default, and try again after that.
STEP_S = 90.0
# Of partitions: busy, idle.
PARTITIONS = {"key": ("0", "1"), "token": ("2", "3")}
BEGAN = time.monotonic()
_SPEAKING = threading.Lock()


def left_s() -> float:
    """How long the soak still lasts."""
    return max(0.0, BEGAN + SOAK_S - time.monotonic())


def signature() -> tuple[str, int]:
    """A new token for the hub, and when it expires."""
    expires_at_s = int(time.time()) + TOKEN_S
    return make_token(f"sb://{HOST}/{HUB}", RULE, KEY, expires_at_s), expires_at_s


class Check:
    """One check, running. `step` names what it does now, for the report when that never ends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_over = False
        self._step, self._since = "begin", time.monotonic()

    def step(self, name: str) -> None:
        self._step, self._since = name, time.monotonic()

    def rest(self, seconds: float) -> None:
        """What follows is waited for, so much longer than a step."""
        self._step, self._since = "rest", time.monotonic() + seconds

    @property
    def hangs(self) -> bool:
        return not self.is_over and time.monotonic() - self._since > STEP_S

    def end(self, problem: str = "") -> None:
        """Print the verdict, once."""
        if not self.is_over:
            self.is_over = True
            minutes = (time.monotonic() - BEGAN) / 60
            detail = f"after {minutes:.1f} min, at '{self._step}': {problem}" if problem else ""
            line = json.dumps({"check": self.name, "ok": not problem, "detail": detail})
            with _SPEAKING:  # checks end on threads of their own
                print(line, flush=True)


def watch(checks: list[Check]) -> None:
    """Return when all checks are over; those that hang are ended."""
    while not all(check.is_over for check in checks):
        time.sleep(1)
        for check in checks:
            if check.hangs:
                check.end(f"it waits for more than {STEP_S:.0f} s")


def run_on_threads(bodies: dict[str, Callable[[Check], None]]) -> None:
    """Run checks side by side, each on a thread, and return when all are over or hang."""
    checks = []
    for name, body in bodies.items():
        check = Check(name)
        checks.append(check)
        threading.Thread(target=_run, args=(check, body), daemon=True).start()
    watch(checks)


def _run(check: Check, body: Callable[[Check], None]) -> None:
    try:
        body(check)
        check.end()
    except Exception as error:
        check.end(f"{type(error).__name__}: {error}")

"""Retries one target's writes: for as long as the service is busy, and for a while when it is away."""

from __future__ import annotations

from hubweir.client.retry import RetryPolicy
from hubweir.errors import AUTH_FAILED, SERVER_BUSY, STORE_OFFLINE, UNAUTHORIZED, ServiceError
from hubweir.spark.patience import Patience, may_pass

_SILENT_S = 60.0  # a busy service is no news: that is what throughput units are for
_WAITS = RetryPolicy(attempts=1, first_s=0.05, longest_s=5.0)


class WritePatience(Patience):
    """Of a partition, a publisher's address, or the hub; what: names it.

    A busy service is waited for as long as it says so: the task lives, the query falls behind, nothing is lost.
    """

    def __init__(self, what: str, limit_s: float) -> None:
        super().__init__(what, limit_s, busy=(SERVER_BUSY, STORE_OFFLINE), silent_s=_SILENT_S, waits=_WAITS)

    def rest(self, error: ServiceError, asked_s: float | None = None, *, rows: str = "writes of this task") -> None:
        """As of Patience, and the error says what could not be written. rows: what was sent."""
        if not may_pass(error):
            hint = ""
            if error.condition in (UNAUTHORIZED, AUTH_FAILED):
                hint = "; the connectionString has to give the right Send there"
            raise ServiceError(error.condition, f"{self.what} takes no {rows}{hint}: {error.text}") from error
        if not self.may_go_on(error, asked_s):
            text = f"{self.what} took nothing for {self.away_s:.0f} s, the operationTimeout: {error.text}"
            raise ServiceError(error.condition, text) from error
        self.pause()

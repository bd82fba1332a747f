"""The status of an open log, as its broker tells it."""

from __future__ import annotations

from hubweir.broker.commands.status import LogTold
from hubweir.broker.hosted_partition import HostedPartition
from hubweir.broker.residents import Resident

NOT_CAPTURED = -1


def log_told(resident: Resident) -> LogTold:
    """resident: what the log is named by, not what lives on it beside that."""
    log, bounds = resident.log, resident.log.bounds
    runner = resident.capture.runner if isinstance(resident, HostedPartition) else None
    behind, failure = (NOT_CAPTURED, "") if runner is None else (runner.behind_events, runner.failure or "")
    return LogTold(log.log_id, bounds.first_index, bounds.next_index, behind, failure)

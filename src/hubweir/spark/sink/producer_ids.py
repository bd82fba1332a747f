"""Names the producer of one task to one partition: the same id in every repeat of the task's work.

A repeat is known by its query and the round in it: query and batch id of a stream, the options queryId and batchId of a
batch write, or else a name made once on the driver, which the attempts of its tasks share and no later job has.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hubweir.event_hub.producer_state import ID_LIMIT


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one task. attempt: 0 for the first one of this run; a run that repeats another begins at 0.

    may_repeat: this may be the batch that another run left half done.
    """

    query: str
    round: int
    task: int
    attempt: int = 0
    may_repeat: bool = False


def producer_id(work: Work, partition_id: str) -> int:
    """63 bits, from 0. Not of the round: state stays at tasks x partitions however long a query runs."""
    name = "\0".join((work.query, str(work.task), partition_id)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big") & ID_LIMIT

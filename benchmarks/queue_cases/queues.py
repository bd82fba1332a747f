"""The queues of the sections, and what they send."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.event_batch import data_section
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString

BODY_BYTES = 200
BATCH_MESSAGES = 100
BATCHES_IN_FLIGHT, SINGLES_IN_FLIGHT = 32, 900
ROUND_LIMIT_S = 120
MESSAGE = data_section(bytes(BODY_BYTES))


def create_queue(target: ConnectionString, name: str, **settings: str) -> None:
    """settings: fields of its description, in the service's words."""
    Administration(target).create(EntityType.QUEUE, name, {"MaxSizeInMegabytes": "5120", **settings})


async def send_all(sender: Sender, payloads: Iterable[bytes], *, message_format: int, in_flight: int) -> None:
    """Send payloads with so many on their way, until all are answered."""
    under_way: deque[asyncio.Future[None]] = deque()
    for payload in payloads:
        if len(under_way) == in_flight:
            await under_way.popleft()
        under_way.append(sender.submit_payload(payload, message_format=message_format))
    for outcome in under_way:
        await outcome


def resident_bytes(pid: int) -> int:
    """What a process has in memory now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stored_bytes(folder: Path) -> int:
    """What the files of a folder have on the disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())

"""Appends to one log of a store for ever, and tells on standard output what was accepted. Run by test_power_cut.py.

    python power_cut_writer.py FOLDER [--lying-sync]

Every record says its own index, so a reader knows what must stand where. A line of output is the next index behind
what the log has answered as durable. --lying-sync is the planted defect: a sync that returns without having synced.
"""

import asyncio
import sys
from functools import partial

from hubweir.drivers.system_env import SystemEnv
from hubweir.messaging_store.disk.files import SystemFile, SystemFiles
from hubweir.messaging_store.log import Appended, Durability, Refused
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.service.completions import answer

LOG_ID = "0" * 31 + "1"
IN_FLIGHT = 4
RECORDS = 20


def record(index: int) -> bytes:
    """What stands at an index: its number, and bytes that follow from it, up to 2 KB."""
    return b"%020d" % index + bytes((index + place) % 251 for place in range(index * 7919 % 2000))


async def append_for_ever(folder: str) -> None:
    env = SystemEnv(SystemFiles(folder))
    store = MessagingStore.open(env, "store-0")
    log = await answer(partial(store.open_log, LOG_ID, durability=Durability.DURABLE, makes=True))
    assert isinstance(log, SegmentLog), log
    room = asyncio.Semaphore(IN_FLIGHT)

    def answered(outcome: Appended | Refused) -> None:
        if isinstance(outcome, Refused):
            sys.exit(f"refused: {outcome.error}")
        print(outcome.next_index, flush=True)
        room.release()

    next_index = log.bounds.next_index
    while True:
        await room.acquire()
        run = pack_operations([record(next_index + place) for place in range(RECORDS)])
        next_index = log.append(run, now_ms=env.now_ms(), on_done=answered).next_index


if __name__ == "__main__":
    if "--lying-sync" in sys.argv:
        SystemFile.sync = lambda self: None
        SystemFile.write_and_sync = SystemFile.write
        SystemFiles.sync_folder = lambda self, path: None
    asyncio.run(append_for_ever(sys.argv[1]))

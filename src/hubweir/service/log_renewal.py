"""The start of a process that makes one lost log anew, on a data folder that no service runs on."""

from __future__ import annotations

import asyncio

from hubweir.drivers.system_env import SystemEnv
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.recovery import UsedNumbers
from hubweir.messaging_store.disk.renewed_log import renew_log
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.service.data_folder import check_data_format


def renew(data: str, store_folder: str, log_id: str, used: UsedNumbers) -> UsedNumbers:
    """As renewed_log.renew_log, in a store of a data folder. StoreLocked when a service runs on the folder."""
    return asyncio.run(_renew(data, store_folder, log_id, used))


async def _renew(data: str, store_folder: str, log_id: str, used: UsedNumbers) -> UsedNumbers:
    files = SystemFiles(data)
    check_data_format(files, data)
    lock = files.lock_folder("")
    env = SystemEnv(files)
    try:
        store = MessagingStore.open(env, store_folder)
        try:
            return renew_log(env, store_folder, log_id, writer_epoch=store.writer_epoch, used=used)
        finally:
            closed = asyncio.Event()
            store.close(closed.set)
            await closed.wait()
    finally:
        env.close()
        lock.release()

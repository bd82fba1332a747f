"""An empty log in the place of one that is lost and will not come back, behind every number that it used. (Promise P4)

After a crash: the log is lost as before, or it is there, empty.
"""

from __future__ import annotations

from dataclasses import replace

from hubweir.env import Env, join_path
from hubweir.errors import StoreError
from hubweir.messaging_store.disk.layout import LOGS_FOLDER, NEWEST_FOLDER, SegmentName, is_log_id
from hubweir.messaging_store.disk.newest_segment import NewestSegment, is_lost, load_newest, save_newest
from hubweir.messaging_store.disk.recovery import NOTHING_USED, UsedNumbers
from hubweir.messaging_store.disk.segment import bare_header, create


def renew_log(
    env: Env, store_folder: str, log_id: str, *, writer_epoch: int, used: UsedNumbers = NOTHING_USED
) -> UsedNumbers:
    """Make the log; return where it begins. Blocking, in a store that is open, for a log that is not.

    writer_epoch: the store's. used: what is known from elsewhere, where the store does not remember the log. Raises
    StoreError when the log is not lost, or nothing tells its numbers; OSError.
    """
    files = env.files
    if not is_log_id(log_id) or not is_lost(files, store_folder, log_id):
        raise StoreError(f"log {log_id} is not lost: nothing was changed")
    newest = load_newest(files, store_folder, log_id)
    if newest is None and used == NOTHING_USED:
        raise StoreError(
            f"{join_path(store_folder, NEWEST_FOLDER, log_id)} is lost, too: nothing tells which numbers log {log_id} "
            "used. Name a sequence number and an offset that it had not reached"
        )
    if newest is not None:
        used = used.or_more(UsedNumbers(newest.index_limit, newest.offset_limit))
    parent = join_path(store_folder, LOGS_FOLDER)
    files.make_folder(join_path(parent, log_id))
    files.sync_folder(parent)
    nonce = int.from_bytes(env.random_bytes(8), "big") | 1
    header = replace(
        bare_header(log_id, nonce, SegmentName(writer_epoch, used.index)),
        first_offset=used.offset, created_ms=env.now_ms(), skipped=used.index,
    )  # fmt: skip
    segment = create(files, join_path(parent, log_id), header)
    try:
        segment.finish()
    finally:
        segment.file.close()
    save_newest(files, store_folder, log_id, NewestSegment(writer_epoch, used.index, used.index, used.offset))
    return used

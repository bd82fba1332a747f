"""Small files that are replaced as a whole: EPOCH, FORMAT, snapshots, and (without a sync) indexes.

A sealed file is: magic 4 bytes `hWw\\x01`, CRC-32C (seed CRC_SEED) 4 bytes of everything behind it, length of the body
8 bytes, body. After a crash the name holds the old body or the new one, never a mixture (rule R11): the new file is
written beside it, synced, renamed over it, and the folder synced.
"""

from __future__ import annotations

import struct

from hubweir.env import Files, join_path
from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import CRC_SEED
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX

_MAGIC = b"hWw\x01"
_HEAD = struct.Struct(">4sI")
_LENGTH = struct.Struct(">Q")


def seal(body: bytes) -> bytes:
    """The bytes of a sealed file that holds body."""
    covered = _LENGTH.pack(len(body)) + body
    return _HEAD.pack(_MAGIC, crc32c(covered, CRC_SEED)) + covered


def unseal(data: bytes) -> bytes | None:
    """The body of a sealed file; None when the bytes are not one, whole and undamaged."""
    if len(data) < _HEAD.size + _LENGTH.size:
        return None
    magic, checksum = _HEAD.unpack_from(data)
    covered = data[_HEAD.size :]
    (length,) = _LENGTH.unpack_from(covered)
    if magic != _MAGIC or length != len(covered) - _LENGTH.size or checksum != crc32c(covered, CRC_SEED):
        return None
    return covered[_LENGTH.size :]


def seal_twice(body: bytes) -> bytes:
    """The bytes of a file that holds two sealed copies of body, one behind the other: damage of one loses nothing."""
    return seal(body) * 2


def unseal_twice(data: bytes) -> tuple[bytes | None, bool]:
    """The body of the first copy that is whole, None when neither is; and whether both are whole."""
    half = len(data) // 2
    first, second = unseal(data[:half]), unseal(data[half:])
    return second if first is None else first, first is not None and second is not None


def write_whole(files: Files, folder: str, name: str, data: bytes, *, durable: bool = True) -> None:
    """Replace folder/name by a file that holds data. durable=False: no sync, for what can be rebuilt.

    Raises OSError; then the old file is still there (or the new one, when only the folder's sync failed).
    """
    path, unfinished = join_path(folder, name), join_path(folder, name + UNFINISHED_SUFFIX)
    if files.exists(unfinished):
        files.remove(unfinished)
    file = files.open(unfinished, create=True)
    try:
        file.write(0, [data])
        if durable:
            file.sync()
    finally:
        file.close()
    files.rename(unfinished, path)
    if durable:
        files.sync_folder(folder)


def read_whole(files: Files, path: str) -> bytes | None:
    """The bytes of a file; None when it is absent."""
    if not files.exists(path):
        return None
    file = files.open_to_read(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def read_sealed(files: Files, path: str) -> bytes | None:
    """The body of a sealed file; None when it is absent or damaged."""
    data = read_whole(files, path)
    return None if data is None else unseal(data)

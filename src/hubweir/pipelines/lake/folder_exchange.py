"""Two folders change names in one step, where the system can: nobody sees a moment in between.

Linux has a call for it, and most of its file systems; Python has none. After a crash it has happened or not; which of
the two is sure when the folder above is synced.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_AT_WORKING_FOLDER, _EXCHANGE = -100, 2
# No such call in this kernel, or not on this file system.
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def exchange(first: Path, second: Path) -> bool:
    """Whether it is done; False, and nothing was touched, where it cannot be. OSError as of a rename."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    paths = os.fsencode(first), os.fsencode(second)
    if rename(_AT_WORKING_FOLDER, paths[0], _AT_WORKING_FOLDER, paths[1], _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(first), None, str(second))

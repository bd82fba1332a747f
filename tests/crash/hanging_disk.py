"""`hubweir` on a disk that hangs: while the file HANGS_WHILE is there, no sync of a file whose path has HANGS_AT ends,
nor, with READS_HANG, a read. The file `HANGS_WHILE.met` is there once one hangs.

The supervisor of several processes runs this file, and starts it again, with a number, for each of them. With PATIENT
those wait for ever, and the supervisor for them.
"""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from hubweir.cli.main import main
from hubweir.env import Buffer
from hubweir.messaging_store.disk.files import SystemFile
from hubweir.service import bounded_stop, broker_process, process_end, supervisor

WAIT_S = 6.0  # in the place of DISK_WAIT_S, for which nobody has time here
sync, write_and_sync, read = SystemFile.sync, SystemFile.write_and_sync, SystemFile.read


def hangs(file: SystemFile) -> None:
    if os.environ["HANGS_AT"] in file.path and Path(os.environ["HANGS_WHILE"]).exists():
        Path(f"{os.environ['HANGS_WHILE']}.met").touch()
        threading.Event().wait()


def slow_sync(self: SystemFile) -> None:
    hangs(self)
    sync(self)


def slow_write_and_sync(self: SystemFile, position: int, buffers: Sequence[Buffer]) -> None:
    hangs(self)
    write_and_sync(self, position, buffers)


def slow_read(self: SystemFile, position: int, size: int) -> bytes:
    if "READS_HANG" in os.environ:
        hangs(self)
    return read(self, position, size)


SystemFile.read = slow_read  # type: ignore[method-assign]
SystemFile.sync = slow_sync  # type: ignore[method-assign]
SystemFile.write_and_sync = slow_write_and_sync  # type: ignore[method-assign]
bounded_stop.DISK_WAIT_S = WAIT_S
if "PATIENT" in os.environ:
    process_end.STOP_S = 600.0
    supervisor.KILL_WAIT_S = WAIT_S
if len(sys.argv) > 1 and sys.argv[1].isdecimal():
    if "PATIENT" in os.environ:
        bounded_stop.DISK_WAIT_S = 600.0
    broker_process.main()
else:
    supervisor.PROGRAM = (sys.executable, __file__)
    main()

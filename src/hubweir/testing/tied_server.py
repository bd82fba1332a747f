"""The command line for as long as whoever started it lives: `python -m hubweir.testing.tied_server FOLDER serve …`.

Standard input is a pipe whose other end the starter holds (ServerProcess, is_tied). When the starter ends, however it
ends, the system closes that end. Then this process gets SIGTERM from itself, so that the service stops in order, or
ends at once where none has begun, and removes FOLDER with all that is in it. A process that the starter forked and left
behind holds the pipe open as well: the server lives until that has ended, too.
"""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import sys
import threading

STANDARD_INPUT = 0


def main() -> None:
    """Run `hubweir` with the arguments behind the folder."""
    folder = sys.argv.pop(1)
    is_alone = threading.Event()

    def end(number: int, frame: object) -> None:
        """An exception would be raised in whatever runs now, which may catch it; nothing keeps this process here."""
        _remove_if(is_alone, folder)
        os._exit(128 + number)

    try:
        signal.signal(signal.SIGTERM, end)  # until the service has a handler of its own
        threading.Thread(target=_wait_for_end, args=(is_alone,), daemon=True).start()
        runpy.run_module("hubweir", run_name="__main__", alter_sys=True)
    finally:
        _remove_if(is_alone, folder)


def _remove_if(is_alone: threading.Event, folder: str) -> None:
    if is_alone.is_set():
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_end(is_alone: threading.Event) -> None:
    """On a thread: wait until the starter has ended. Nobody writes to the pipe, so a read ends with it."""
    while os.read(STANDARD_INPUT, 1):
        pass
    is_alone.set()
    # A service that has ended has taken its handler with it: the signal would keep the folder from being removed.
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()

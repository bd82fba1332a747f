"""A server for a load that kills it over and over: ours, or one with a planted defect (hasty_server.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hubweir.testing.server_process import ServerProcess

HASTY = str(Path(__file__).with_name("hasty_server.py"))


@contextmanager
def killable_server(data: Path, seed: int, *, planted: str = "") -> Iterator[ServerProcess]:
    """It runs, and is killed at the end. Whatever goes wrong inside names the seed, as far as a kill can be played
    again.
    """
    server = ServerProcess(data, program=(HASTY,), environment={"PLANTED": planted}) if planted else ServerProcess(data)
    try:
        server.start()
        yield server
    except BaseException as error:
        error.add_note(f"seed {seed}: HUBWEIR_FIRST_SEED={seed} plays it again")
        raise
    finally:
        server.kill9()

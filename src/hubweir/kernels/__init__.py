"""Kernels: the loops that run once an event, as functions over buffers. Floor: codec.

contract.py says what each promises, columns_contract.py those of Capture and of Arrow columns, queue_contract.py those
of queues; stored_batch.py is the one format on disk. Import kernels from here: this page picks the compiled ones where
they were built, and otherwise their twins in plain Python, which twins.py lists. HUBWEIR_KERNELS=pure in the
environment asks for the twins, HUBWEIR_KERNELS=compiled refuses to run without the compiled ones. which() says what
this process has.

A room a subject. frames/ cuts bytes into frames and writes transfers; messages/ finds the sections of a message, makes
records of it and opens it for a client; batches/ walks and checks stored batches; keys/ finds where deliveries go;
columns/ turns events into Arrow columns and rows into batches; capture/ writes and reads Avro; queue/ keeps the rows of
queues, messages and locks; buffers/ is what all of them stand on. In a room `_ROOM.pyx` is the door that is compiled:
it borrows buffers, checks the call, and raises. The work is in the `.pxd` pages, as functions on pointers; the page of
the same name in plain Python is their twin. Where several compiled pages do what one in plain Python does, each names
it; a kernel that stands in the door itself has a page in plain Python alone.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Literal

from hubweir.kernels import twins
from hubweir.kernels.twins import *  # noqa: F403  # the list of kernels stands on that page, once

_WANTED = os.environ.get("HUBWEIR_KERNELS", "")
_RUNNING: Literal["compiled", "pure"] = "pure"
# The rooms that have a door; of buffers/ every other room has its own copy.
DOORS = ("batches", "capture", "columns", "frames", "keys", "messages", "queue")

if _WANTED != "pure":
    try:
        _compiled = [import_module(f"hubweir.kernels.{room}._{room}") for room in DOORS]
    except ImportError:
        if _WANTED == "compiled":
            raise
    else:
        _RUNNING = "compiled"
        for _name in twins.KERNELS:
            globals()[_name] = next(vars(door)[_name] for door in _compiled if _name in vars(door))


def which() -> Literal["compiled", "pure"]:
    """Which twins this process runs."""
    return _RUNNING

"""A checkpoint belongs to one pipeline over one event hub, and to one run at a time.

Sequence numbers of one hub mean nothing in another: a checkpoint that is used for another hub would leave out events,
and say nothing. So the first run notes whose it is, in `hubweir/owner.json` of the checkpoint, and later ones are held
against it, once a micro-batch was planned: a start that failed over a misspelt hub binds nobody. Two runs at once would
write over each other's notes, and into one table: the lock `<checkpoint>.lock` belongs to the process that runs, and
ends with it however it ends. Checkpoints that are no folder of this machine have neither.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from hubweir.pipelines.durable_file import publish
from hubweir.pipelines.errors import CheckpointInUse, IllegalDescription

LOCK_SUFFIX = ".lock"


@dataclass(frozen=True, slots=True)
class CheckpointOwner:
    """Whose a checkpoint is. endpoint: of the namespace."""

    pipeline: str
    event_hub: str
    endpoint: str


@contextmanager
def locked_checkpoint(checkpoint: Path, owner: CheckpointOwner) -> Iterator[None]:
    """While inside, the checkpoint is this run's alone. CheckpointInUse; IllegalDescription when it is of another, or
    cannot be written.

    After a crash: the lock is free, the owner stays.
    """
    found = checkpoint.resolve()  # by another way to it, it is the same one
    path = found.with_name(found.name + LOCK_SUFFIX)
    try:
        found.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _unusable(checkpoint, error) from None
    try:
        _lock(fd, checkpoint)
        try:
            _check(checkpoint, owner)
        except OSError as error:
            raise _unusable(checkpoint, error) from None
        yield
    finally:
        os.close(fd)


def _unusable(checkpoint: Path, error: OSError) -> IllegalDescription:
    return IllegalDescription(
        f"checkpoint {checkpoint} cannot be used: {error}; give this pipeline a folder that it may write"
    )


def _lock(fd: int, checkpoint: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise CheckpointInUse(
            f"checkpoint {checkpoint} is in use by another run, process {owner}: stop it first, or give this pipeline "
            "another checkpoint"
        ) from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


def _check(checkpoint: Path, owner: CheckpointOwner) -> None:
    note = checkpoint / "hubweir" / "owner.json"
    try:
        found = CheckpointOwner(**json.loads(note.read_text()))
    except FileNotFoundError:
        _write(note, owner)
        return
    except (ValueError, TypeError):
        raise IllegalDescription(f"{note} does not say whose checkpoint {checkpoint} is: give another one") from None
    if found == owner:
        return
    if not _is_begun(checkpoint):
        _write(note, owner)
    else:
        raise IllegalDescription(
            f"checkpoint {checkpoint} is of the pipeline {found.pipeline} over event hub '{found.event_hub}' of "
            f"{found.endpoint}, and this is {owner.pipeline} over '{owner.event_hub}' of {owner.endpoint}: give it "
            f"another checkpoint, or, when the namespace has only another address now, remove {note}"
        )


def _is_begun(checkpoint: Path) -> bool:
    """Whether Spark planned a micro-batch there, or a program noted something about the hub."""
    notes = (path for path in (checkpoint / "hubweir").glob("[!.]*.json") if path.name != "owner.json")
    return any((checkpoint / "offsets").glob("[0-9]*")) or any(notes)


def _write(note: Path, owner: CheckpointOwner) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    unfinished = note.with_name(".owner.new")
    unfinished.write_text(json.dumps(asdict(owner)))
    publish(unfinished, note)

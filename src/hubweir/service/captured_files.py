"""Captured files in the local folder of a data folder, as backups and restores copy them.

A namespace's files are known by their names, as its hubs would give them now. What is still being made is left out.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hubweir.namespace.catalog import Catalog
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.service.data_folder import CAPTURE_FOLDER

_TOKENS = re.compile(r"\{(\w+)\}")
_UNFINISHED = (".tmp", ".claim")


def captured_paths(catalogs: Iterable[tuple[NamespaceDescription, Catalog]], namespace: str) -> re.Pattern[str]:
    """What the paths of a namespace's captured files look like below the local folder, as its hubs name them now."""
    named = fold(namespace)
    patterns = []
    for description, catalog in catalogs:
        for entity in catalog.entities() if fold(description.name) == named else ():
            capture = entity.description.capture if isinstance(entity.description, EventHubDescription) else None
            if capture is not None:
                words = {"Namespace": re.escape(description.name), "EventHub": re.escape(entity.name)}
                container = f"{capture.container}/" if capture.container else ""
                parts = _TOKENS.split(capture.archive_name_format)
                filled = (
                    words.get(part, "[0-9]+") if place % 2 else re.escape(part) for place, part in enumerate(parts)
                )
                patterns.append(re.escape(container) + "".join(filled) + r"\.avro")
    return re.compile("|".join(patterns) or r"(?!)")


def captured_files(data: Path, paths: re.Pattern[str] | None) -> Iterator[Path]:
    """Finished files of the local folder, relative to the data folder. paths: of those that are meant; None: all."""
    top = data / CAPTURE_FOLDER
    for parent, _, names in os.walk(top):
        for name in names:
            path = Path(parent) / name
            if not name.endswith(_UNFINISHED) and (paths is None or paths.fullmatch(path.relative_to(top).as_posix())):
                yield path.relative_to(data)


def copy_captured(
    source: Path, data: Path, paths: re.Pattern[str], before_each: Callable[[], None] = lambda: None
) -> None:
    """Copy captured files to another data folder, durably; what is there stays as it is. Blocking; raises OSError.

    before_each: called before every file; what it raises ends the copy.
    """
    for path in captured_files(source, paths):
        before_each()
        if not (data / path).exists():
            copy_file(source / path, data / path)
            sync_path((data / path).parent)


def copy_file(source: Path, target: Path) -> None:
    """Copy one file with its times, and make what is in it durable; not its name.

    After a crash: it is there whole, or not; what was being copied has another name, which the next copy uses again.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(target.name + _UNFINISHED[0])
    shutil.copy2(source, unfinished)
    sync_path(unfinished)
    os.replace(unfinished, target)


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Progress of a pipeline: the file `<checkpoint>.status.json`, replaced as a whole after every micro-batch.

It holds no secret. `partitions` has for each partition the next sequence number to read, and how many events were
behind it when the hub was last asked. After a kill it is that of some batch before; the checkpoint is what counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hubweir.pipelines.captured.windows import without_window
from hubweir.pipelines.errors import IllegalDescription
from hubweir.spark.source.offsets import FROM, INITIAL, plain

SUFFIX = ".status.json"
RUNNING, STOPPED, FAILED = "running", "stopped", "failed"


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """next: sequence number. behind: events that the hub had beyond it."""

    next: int
    behind: int


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run. batch: -1 before the first. events: read in this run. updated_ms: since 1970. endpoint: of the hub."""

    name: str
    pipeline: str
    event_hub: str
    state: str
    pid: int
    updated_ms: int
    batch: int = -1
    events: int = 0
    events_per_s: float = 0.0
    partitions: Mapping[str, PartitionStatus] = field(default_factory=dict)
    failure: str = ""
    endpoint: str = ""

    @property
    def behind(self) -> int:
        """Events of all partitions."""
        return sum(each.behind for each in self.partitions.values())


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """What one entry of a query's progress says of the first source, in events."""

    batch: int
    events: int
    events_per_s: float
    partitions: dict[str, PartitionStatus]


def progress_of(entry: Mapping[str, Any], known: Mapping[str, PartitionStatus] | None = None) -> BatchProgress:
    """Read an entry of StreamingQuery.recentProgress. Events are counted by offsets: rows may be other things.

    known: what was known before. A batch that a restart repeats is planned without asking the hub what it has.
    """
    source = entry["sources"][0]
    start, end, latest = (
        without_window(_offset(source.get(name))) for name in ("startOffset", "endOffset", "latestOffset")
    )
    # The first batch has its true start in its end, which stays that of later batches that read nothing.
    is_first = not start or INITIAL in start
    begin = plain(end[FROM] if is_first and FROM in end else start)
    upto = plain(end)
    highs = plain(latest) or {key: one.next + one.behind for key, one in (known or {}).items()}
    read = 0 if INITIAL in end and FROM not in end else sum(upto[key] - begin.get(key, 0) for key in upto)
    took_s = entry["durationMs"].get("triggerExecution", 0) / 1000
    partitions = {key: PartitionStatus(upto[key], max(0, highs.get(key, 0) - upto[key])) for key in upto}
    return BatchProgress(entry["batchId"], read, read / took_s if took_s else 0.0, partitions)


def _offset(text: Any) -> dict[str, Any]:
    found = json.loads(text) if isinstance(text, str) else text
    return dict(found or {})


def status_path(checkpoint: Path) -> Path:
    """Where the status of a pipeline with this checkpoint folder is."""
    return checkpoint.with_name(checkpoint.name + SUFFIX)


def write_status(checkpoint: Path, status: RunStatus) -> None:
    """Put it in place of the one before."""
    path = status_path(checkpoint)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(asdict(status), indent=2))
    unfinished.replace(path)


def read_status(checkpoint: Path) -> RunStatus:
    """IllegalDescription when no pipeline with that checkpoint has run here."""
    path = status_path(checkpoint)
    try:
        found = json.loads(path.read_text())
        partitions = {key: PartitionStatus(**one) for key, one in found.pop("partitions").items()}
        status = RunStatus(**found, partitions=partitions)
    except FileNotFoundError:
        raise IllegalDescription(f"no pipeline has run with the checkpoint {checkpoint}: there is no {path}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise IllegalDescription(f"{path} is no status of a pipeline: remove it") from None
    return status


def known_partitions(checkpoint: Path) -> Mapping[str, PartitionStatus]:
    """Those of the run before; none when there was none, or its status cannot be read."""
    try:
        return read_status(checkpoint).partitions
    except IllegalDescription:
        return {}


def known_checkpoints(folder: Path) -> Iterator[Path]:
    """The checkpoints in a folder that have a status."""
    for path in sorted(folder.glob(f"[!.]*{SUFFIX}")):
        yield path.with_name(path.name.removesuffix(SUFFIX))

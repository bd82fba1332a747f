"""Where a broker's captured files may go, and how long retention waits for capture: what a start hands in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.broker.capture_slots import CaptureSlots
from hubweir.capture.destination import LocalFolder, SharedDestination
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.env import Env, Files
from hubweir.namespace.capture_description import CaptureDestination

GIB = 1024 * 1024 * 1024
DAY_MS = 86_400_000


class NoDestination(OSError):
    """The destination that a hub is captured to is not set up any more."""


@dataclass(frozen=True, slots=True)
class CaptureQuota:
    """How much of one partition retention keeps beyond its time because capture has not read it."""

    size_bytes: int = 8 * GIB
    age_ms: int = 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class CapturePlaces:
    """files, folder: of the local folder.

    containers: makes the destination of one container of the storage account; None: the service has no account.
    """

    files: Files
    folder: str = ""
    containers: Callable[[str], SharedDestination] | None = None
    quota: CaptureQuota = CaptureQuota()

    def destination(self, kind: CaptureDestination, container: str) -> SharedDestination:
        """The place of that name. Raises NoDestination. May block: for the pool's threads."""
        if kind is CaptureDestination.LOCAL_FOLDER:
            return LocalFolder(self.files, "/".join(part for part in (self.folder, container) if part))
        if self.containers is None:
            raise NoDestination(f"{kind.value} needs a storage account: give its connection string (capture_storage)")
        return self.containers(container)


@dataclass(frozen=True, slots=True)
class CaptureWorld:
    """What all captures of a broker share."""

    env: Env
    counters: Counters
    places: CapturePlaces
    slots: CaptureSlots
    pace: CapturePace

"""Destinations of a broker's captured files, and how long retention waits for capture, as a start sets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hubweir.alarms import Alarms
from hubweir.broker.capture.slots import CaptureSlots
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.capture.destination import DurableFolders, LocalFolder, SharedDestination
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.env import Env, Files
from hubweir.limits import CaptureLimits
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.namespace.capture_description import CaptureDestination


class NoDestination(OSError):
    """The destination that a hub is captured to is not set up any more."""


@dataclass(frozen=True, slots=True)
class CaptureQuota:
    """How much of one partition retention keeps beyond its time because capture has not read it."""

    size_bytes: int = CaptureLimits.capture_backlog_bytes
    age_ms: int = CaptureLimits.capture_backlog_ms


@dataclass(frozen=True, slots=True)
class CapturePlaces:
    """files, folder: of the local folder.

    containers: makes the destination of one container of the storage account; None: the service has no account.
    """

    files: Files
    folder: str = ""
    containers: Callable[[str], SharedDestination] | None = None
    quota: CaptureQuota = CaptureQuota()
    _folders: DurableFolders = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folders", DurableFolders(self.files))

    def destination(self, kind: CaptureDestination, container: str) -> SharedDestination:
        """The place of that name. Raises NoDestination. May block: for the pool's threads."""
        if kind is CaptureDestination.LOCAL_FOLDER:
            folder = "/".join(part for part in (self.folder, container) if part)
            return LocalFolder(self.files, folder, self._folders)
        if self.containers is None:
            raise NoDestination(
                f"{kind.value} needs a storage account: give its connection string (serve --capture-storage)"
            )
        return self.containers(container)


@dataclass(frozen=True, slots=True)
class CaptureTools:
    """What all captures of a broker share. clock: which names files by the second."""

    env: Env
    deadlines: BrokerDeadlines
    clock: TrustedClock
    counters: Counters
    alarms: Alarms
    places: CapturePlaces
    slots: CaptureSlots
    pace: CapturePace

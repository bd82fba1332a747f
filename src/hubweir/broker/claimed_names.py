"""Names of files that are being made: no two partitions make one of the same name at the same time.

A format of one's own may give two hubs one name (`{Namespace}{EventHub}`: n and shub, ns and hub). A finished file is
seen in its destination, one that is being made is not: so it is claimed here from before its intent is durable until
the mark is behind it. After a crash the intents claim again; they never clashed.
"""

from __future__ import annotations

from threading import Lock

from hubweir.namespace.capture_description import CaptureDestination


class ClaimedNames:
    """Of all captures of one broker. Used on the loop and on threads of the pool."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owners: dict[tuple[bool, str], object] = {}

    def claim(self, owner: object, destination: CaptureDestination, container: str, name: str) -> bool:
        """Claim a name, in place of what this owner claimed before. False when another one has it."""
        # Both kinds of accounts are one place; a container of the local folder is a folder below it.
        place = destination is CaptureDestination.LOCAL_FOLDER, f"{container}/{name}".lstrip("/")
        with self._lock:
            self._drop(owner)
            return self._owners.setdefault(place, owner) is owner

    def release(self, owner: object) -> None:
        """This owner makes no file now."""
        with self._lock:
            self._drop(owner)

    def _drop(self, owner: object) -> None:
        for place in [place for place, its in self._owners.items() if its is owner]:
            del self._owners[place]

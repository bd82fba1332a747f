"""Places of captured files, a folder or a prefix of a blob container, and what the files' names tell.

A name is the hub's pattern filled in (docs/capture.md), so it tells partition and second without opening the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hubweir.spark.errors import IllegalCapture, IllegalOption

SUFFIX = ".avro"
DEFAULT_FORMAT = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
_TOKENS = {
    "Namespace": "[^/]+", "EventHub": "[^/]+", "PartitionId": "[0-9]+", "Year": "[0-9]{4}", "Month": "[0-9]{2}",
    "Day": "[0-9]{2}", "Hour": "[0-9]{2}", "Minute": "[0-9]{2}", "Second": "[0-9]{2}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CapturedName:
    """One file, by its name. path: below its place. second: since 1970, when its window was closed.

    series: what the files of one partition of one hub have in common, and no others.
    """

    path: str
    size_bytes: int
    partition_id: str
    second: int
    series: str = ""


def name_pattern(name_format: str) -> re.Pattern[str]:
    """What the names of a format look like, at the end of a path. IllegalOption when a token is unknown or missing."""
    parts = re.split(r"\{([^{}]*)\}", name_format)
    tokens = parts[1::2]
    unknown = [token for token in tokens if token not in _TOKENS]
    missing = [
        token for token in ("PartitionId", "Year", "Month", "Day", "Hour", "Minute", "Second") if token not in tokens
    ]
    if unknown or missing or len(set(tokens)) < len(tokens):
        raise IllegalOption(
            f"archiveNameFormat '{name_format[:200]}' is not the format of a capture: write each of "
            f"{', '.join('{' + token + '}' for token in _TOKENS)} once, in any order"
        )
    text = "".join(f"(?P<{part}>{_TOKENS[part]})" if place % 2 else re.escape(part) for place, part in enumerate(parts))
    return re.compile(f"(?:^|/){text}{re.escape(SUFFIX)}$")


def parse_name(pattern: re.Pattern[str], prefix: str, path: str, size_bytes: int) -> CapturedName:
    """What a file's name tells. prefix: the path of its place, which may hold the name's first parts already.

    pattern: of name_pattern, so of one archiveNameFormat. IllegalCapture: the name is not of it, or tells no date.
    """
    whole = f"{prefix.rstrip('/')}/{path}"
    found = pattern.search(whole)
    try:
        if found is None:
            raise ValueError
        numbers = [int(found[token]) for token in ("Year", "Month", "Day", "Hour", "Minute", "Second")]
        year, month, day, hour, minute, second = numbers
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise IllegalCapture(
            f"the name of {path} is not of the format of this capture: say it with the option archiveNameFormat"
        ) from None
    named = [found[token] for token in ("Namespace", "EventHub", "PartitionId") if token in pattern.groupindex]
    series = "/".join((whole[: found.start()], *named))
    return CapturedName(path, size_bytes, str(int(found["PartitionId"])), int(at.timestamp()), series)


class LocalPlace:
    """A folder of this machine, or one that all machines see under the same name."""

    def __init__(self, folder: str) -> None:
        self.prefix = str(Path(folder).absolute())

    def files(self) -> Iterator[tuple[str, int]]:
        """Paths below it and their sizes. IllegalCapture when there is no such folder."""
        root = Path(self.prefix)
        if not root.is_dir():
            raise IllegalCapture(f"there is no folder {root}")
        for found in root.rglob(f"*{SUFFIX}"):
            yield found.relative_to(root).as_posix(), found.stat().st_size

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes of a file; fewer at its end."""
        with (Path(self.prefix) / path).open("rb") as file:
            file.seek(start)
            return file.read(end - start)


class BlobPlace:
    """A prefix of a container: `az://container/prefix`, or any address that obstore takes."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        try:
            from obstore.store import from_url
        except ImportError:
            raise IllegalOption("reading from blob storage needs the package obstore: pip install obstore") from None
        parts = urlsplit(url)
        self.prefix = parts.path
        self._url = f"{parts.scheme}://{parts.netloc}{parts.path}"  # behind it there may be a signature
        try:
            config: Any = dict(settings) or None
            # Azure's stand-in on this machine has no TLS; obstore wants to be told that this is meant.
            client: Any = {"allow_http": True} if settings.get("endpoint", "").startswith("http:") else None
            self._store: Any = from_url(url, config=config, client_options=client)
        except Exception as error:  # obstore's own errors have no common class that it exports
            raise IllegalOption(f"{url} cannot be opened: {str(error).splitlines()[0]}") from None

    def files(self) -> Iterator[tuple[str, int]]:
        """See LocalPlace.files. IllegalCapture when the store does not answer, or refuses."""
        import obstore

        with self._as_illegal_capture():
            for chunk in obstore.list(self._store):
                for found in chunk:
                    if found["path"].endswith(SUFFIX):
                        yield found["path"], found["size"]

    def read(self, path: str, start: int, end: int) -> bytes:
        """See LocalPlace.read. IllegalCapture as of files."""
        import obstore

        with self._as_illegal_capture():
            return bytes(obstore.get_range(self._store, path, start=start, end=end))

    @contextmanager
    def _as_illegal_capture(self) -> Iterator[None]:
        """What the library says, as one line without its debugging text."""
        import obstore.exceptions

        try:
            yield
        except (OSError, obstore.exceptions.BaseError) as error:
            text = " ".join(str(error).split()).partition(" Debug source")[0].partition(" <?xml")[0]
            raise IllegalCapture(f"{self._url} cannot be read: {text[:300]}") from error


def place_of(path: str, settings: Mapping[str, str]) -> LocalPlace | BlobPlace:
    """The place that a path or address names. settings: of the store, such as its account and key."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        return LocalPlace(unquote(parts.path))
    if "://" in path:
        return BlobPlace(path, settings)
    return LocalPlace(path)

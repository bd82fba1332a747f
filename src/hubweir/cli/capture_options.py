"""Options of capture for `hubweir eventhub create` and `update`, in the words of the cloud's command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

# Option, its name in a request, kind, meaning. az eventhubs eventhub create has the same words.
_OPTIONS: tuple[tuple[str, str, Any, str], ...] = (
    ("--enable-capture", "enabled", bool, "Write events to files as they come: true or false."),
    ("--capture-interval", "interval_s", int, "Seconds after which a file is closed: 60 to 900."),
    ("--capture-size-limit", "size_limit_bytes", int, "Bytes at which a file is closed: 10485760 to 524288000."),
    (
        "--destination-name",
        "destination",
        str,
        "EventHubArchive.LocalFolder, EventHubArchive.AzureBlockBlob or EventHubArchive.AzureDataLake.",
    ),
    ("--storage-account", "storage_account", str, "Name or resource id of the storage account."),
    ("--blob-container", "container", str, "Container for the files; of a local folder a folder below it."),
    ("--archive-name-format", "archive_name_format", str, "Names of files, with all nine tokens such as {EventHub}."),
    ("--skip-empty-archives", "skip_empty_archives", bool, "No file for a window without events: true or false."),
)


def takes_capture(command: Command) -> Command:
    """Give a command the options; `given_capture` takes them out of its keyword arguments."""
    for flag, name, kind, meaning in reversed(_OPTIONS):
        command = click.option(flag, name, type=kind, help=meaning)(command)
    return command


def given_capture(options: dict[str, Any]) -> dict[str, Any]:
    """What was given, by the names of a request; empty when nothing was."""
    return {name: options[name] for _, name, _, _ in _OPTIONS if options.get(name) is not None}


def capture_text(capture: dict[str, Any]) -> str:
    """A hub's capture in one line."""
    if not capture["enabled"]:
        return "capture: off"
    where = "/".join(part for part in (capture["destination"], capture["container"]) if part)
    empty = ", no empty files" if capture["skip_empty_archives"] else ""
    return (
        f"capture: every {capture['interval_s']} s or {capture['size_limit_bytes']} bytes to {where}{empty}, as "
        f"{capture['archive_name_format']}"
    )


def capture_row(state: dict[str, Any]) -> tuple[str, ...]:
    """How far capture of one partition is, as a row of a table."""
    return (
        state["partition"], str(state["files"]), str(state["behind_events"]), str(state["behind_bytes"]),
        str(state["uncaptured_events"]), state["last_file"], state["failure"],
    )  # fmt: skip

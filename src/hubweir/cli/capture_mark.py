"""The mark of capture in the notes of a partition's log: what `hubweir store show` and `hubweir store verify` tell.

One that cannot be read is told as that, with what a start makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.capture.capture_mark import MARK_KEY, CaptureMark, unpack_mark
from hubweir.cli.counted import counted
from hubweir.env import Files, join_path
from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.disk.inspection import Finding
from hubweir.messaging_store.disk.notes import load_notes, note_files


@dataclass(frozen=True, slots=True)
class ShownMark:
    """mark: None when it cannot be read; problem then says why. behind: events of the log in no finished file."""

    mark: CaptureMark | None
    problem: str
    behind: int

    def document(self) -> dict[str, object]:
        """As JSON. The seed is left out: nothing that people do needs it."""
        mark = self.mark
        if mark is None:
            return {"problem": self.problem}
        intent = mark.intent
        return {
            "problem": None,
            "next_sequence_number": mark.next_index,
            "next_offset": mark.next_offset,
            "behind_events": self.behind,
            "window_start_ms": mark.window_start_ms,
            "files": mark.files,
            "last_file": mark.last_file or None,
            "uncaptured_events": mark.uncaptured,
            "uncaptured_ranges": [{"first": first, "last": end - 1} for first, end in mark.lost],
            "intent": None
            if intent is None
            else {
                "first": intent.first,
                "last": intent.end - 1 if intent.end > intent.first else None,
                "name": intent.name,
                "destination": intent.destination.value,
                "container": intent.container,
            },
        }

    def lines(self) -> list[str]:
        """For people."""
        mark = self.mark
        if mark is None:
            return [f"capture: {self.problem}"]
        newest = f", the newest {mark.last_file}" if mark.last_file else ""
        files = f"{counted(mark.files, 'file')}{newest}"
        found = [f"capture: next sequence number {mark.next_index}, {self.behind} behind; {files}"]
        if mark.intent is not None:
            its = mark.intent
            place = f" of {its.container}" if its.container else ""
            events = f"events {its.first} to {its.end - 1}" if its.end > its.first else "no events"
            found.append(f"capture: a file is being made: {its.name}{place} in {its.destination.value}, {events}")
        if mark.uncaptured:
            ranges = ", ".join(f"{first} to {end - 1}" for first, end in mark.lost)
            found.append(f"capture: {counted(mark.uncaptured, 'event')} went uncaptured, the last of them {ranges}")
        return found


def shown_mark(files: Files, folder: str, next_index: int) -> ShownMark | None:
    """The mark in the notes of a log's folder; None when there is none. next_index: of the log. Raises OSError."""
    try:
        found = load_notes(files, folder)
        note = found.notes.get(MARK_KEY)
        if note is None and found.damage is None:
            return None
        if note is None:
            raise CorruptStore(found.damage or "")
        mark = unpack_mark(note.body)
    except CorruptStore as error:
        text = (
            f"the mark is damaged ({error}); a start begins again with the oldest event, and events may be in two files"
        )
        return ShownMark(None, text, 0)
    except NewerFormat as error:
        return ShownMark(None, str(error), 0)
    return ShownMark(mark, "", max(0, next_index - mark.next_index))


def mark_finding(files: Files, folder: str, *, is_captured: bool) -> Finding | None:
    """What is wrong with the mark in a log's folder; None when nothing is. Raises OSError.

    is_captured: the catalog says that capture is on, so there has to be one.
    """
    found, path = shown_mark(files, folder, 0), join_path(folder, *note_files(files, folder)[-1:])
    if found is None:
        text = (
            "the hub is captured and its mark is not there: a start captures what comes from then on, and what is in "
            "no finished file stays uncaptured; put the file back if you have it"
        )
        return Finding("capture mark", path, 0, text) if is_captured else None
    if found.mark is None and is_captured:
        return Finding("capture mark", path, 0, found.problem)
    return None

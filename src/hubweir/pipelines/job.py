"""The argument of a pipeline's program: the session, its description, and the stream of its hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from hubweir.pipelines.description import Description
from hubweir.pipelines.durable_file import publish
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.fields import Value
from hubweir.spark.source.read_options import ReadOptions, parse_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a pipeline."""

    spark: SparkSession
    description: Description

    def events(self, *columns: str) -> DataFrame:
        """The stream of the source's hub; columns: only these, which is cheaper. From the first event there is,
        unless the source says another startingPosition.
        """
        return self.source("eventhubs", **({"columns": ",".join(columns)} if columns else {}))

    def source(self, name: str, **more: str) -> DataFrame:
        """A stream of another format with the source's options, and more."""
        given = dict(self.description.source)
        if not any(key.lower().removeprefix("eventhubs.").startswith("startingposition") for key in given):
            given["startingPosition"] = "earliest"
        return self.spark.readStream.format(name).options(**given).options(**more).load()

    @property
    def options(self) -> ReadOptions:
        """The source's options, read."""
        return parse_options(self.description.source, is_stream=True)

    def text(self, name: str) -> str:
        """A parameter that is text."""
        return str(self.description.parameters[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """A parameter that is a list."""
        value = self.description.parameters[name]
        assert isinstance(value, tuple)
        return value

    def number(self, name: str) -> float:
        """A parameter that is a number or a duration in seconds."""
        return _number(self.description.parameters[name])

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.description.parameters[name] is True

    def sink(self, name: str) -> str:
        """A value of the sink, as text."""
        return str(self.description.sink[name])

    def sink_number(self, name: str) -> float:
        """A value of the sink that is a number or a duration in seconds."""
        return _number(self.description.sink[name])

    def notes(self) -> Path:
        """A folder in the checkpoint for what the program itself has to remember; made when it is not there.

        IllegalDescription when the checkpoint is not on this machine, or one that it sees as a folder.
        """
        folder = local_folder(self.description.checkpoint)
        if folder is None:
            raise IllegalDescription(
                f"checkpoint {self.description.checkpoint}: {self.description.pipeline} keeps notes of its own there, "
                "and needs a folder that this machine sees"
            )
        notes = folder / "hubweir"
        notes.mkdir(parents=True, exist_ok=True)
        return notes

    def identity(self) -> str:
        """A name that no other checkpoint's writes have, and that this one's always have. Errors as of notes."""
        note = self.notes() / "identity"
        if not note.exists():
            unfinished = note.with_name(".identity.new")
            unfinished.write_text(uuid4().hex)
            publish(unfinished, note)
        return note.read_text()


def local_folder(address: str) -> Path | None:
    """The folder of this machine that an address is; None when it is elsewhere."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in address else Path(address)


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return value

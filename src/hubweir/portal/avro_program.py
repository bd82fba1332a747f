"""The program of the process that reads Avro: object container files of strangers, with fastavro, under limits.

fastavro takes what a file claims as it is: a few bytes may ask for gigabytes, for hours or for a stack without end. So
this process first has the system limit its memory and its processor time, tries that the limit of memory holds, and
only then reads. It is started as a file and imports nothing of hubweir, so it begins within 50 ms. (avro_reading.py)

    arguments        folder where fastavro lies, bytes of memory, seconds of a processor a body, characters a body
    standard input   bodies, each behind its length (four bytes, the highest first); it ends with the input
    standard output  for each body its answer as JSON, behind its length likewise
    exit             0: all is read. NO_LIMITS, NO_FASTAVRO: nothing can be read here. A signal: a body was too much
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

LENGTH = struct.Struct(">I")
NO_LIMITS, NO_FASTAVRO = 3, 4
PROBLEM_CHARACTERS = 300


def main() -> int:
    """See the module's text."""
    folder, memory_bytes, processor_s, characters = sys.argv[1], *map(int, sys.argv[2:])
    sys.path.append(folder)
    try:
        import fastavro  # noqa: F401 - its modules are read before no file may be opened
    except ImportError:
        return NO_FASTAVRO
    if not limit_process(memory_bytes):
        return NO_LIMITS
    bodies, answers = sys.stdin.buffer, sys.stdout.buffer
    while head := bodies.read(LENGTH.size):
        body = bodies.read(LENGTH.unpack(head)[0])
        limit_processor(processor_s)
        answer(answers, read_file(body, characters))
    return 0


def answer(answers: BinaryIO, said: dict[str, Any]) -> None:
    """Give what became of a body."""
    data = json.dumps(said).encode()
    answers.write(LENGTH.pack(len(data)) + data)
    answers.flush()


def limit_process(memory_bytes: int) -> bool:
    """Limit the memory of this process, and have it write no file; False: this system does not hold it to that."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return False
    try:
        # Some systems take the limit and forget it.
        mmap.mmap(-1, memory_bytes).close()
    except (OSError, MemoryError):
        return True
    return False


def limit_processor(processor_s: int) -> None:
    """Let the system end this process when it has worked for so many seconds more; the limit counts whole ones."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + processor_s, hard))


def read_file(body: bytes, characters: int) -> dict[str, Any]:
    """What is in an object container file, as far as it can be read and shown.

    text: records as JSON, one below the other. is_cut: there are more, or the last one is not whole. schema: the type
    and name of a record. problem: why it goes no further; "" for nothing.
    """
    import fastavro

    said: dict[str, Any] = {"text": "", "is_cut": False, "schema": "", "codec": "", "problem": ""}
    pieces: list[str] = []
    length = 0
    try:
        records = fastavro.reader(io.BytesIO(body))
        said["schema"], said["codec"] = _name_of(records.writer_schema), records.codec
        for piece in _pieces(records):
            pieces.append(piece)
            length += len(piece)
            if length > characters:
                said["is_cut"] = True
                break
    except MemoryError:
        said["problem"] = "it asks for more memory than the process that reads it may have"
    except Exception as error:  # whatever fastavro raises about bytes of a stranger
        said["problem"] = _sound(f"{type(error).__name__}: {error}")
    said["text"] = _sound("".join(pieces), characters)
    return said


def _pieces(records: Iterable[Any]) -> Iterator[str]:
    """JSON of one record below the other, in pieces: a record may be far longer than what is shown of it."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, default=_plain)
    for number, record in enumerate(records):
        if number:
            yield "\n"
        yield from encoder.iterencode(record)


def _sound(text: str, characters: int = PROBLEM_CHARACTERS) -> str:
    """The first characters of a text, each one that may be sent: a schema can hold half of a pair of surrogates."""
    return text[:characters].encode(errors="replace").decode()


def _name_of(schema: Any) -> str:
    """How people call a schema: its type and its name."""
    if isinstance(schema, dict):
        return _sound(" ".join(schema[each] for each in ("type", "name") if isinstance(schema.get(each), str)))
    return schema if isinstance(schema, str) else "union"


def _plain(value: object) -> str:
    """A value that JSON does not have: bytes as text where they are text, else as digits; times and numbers as such."""
    if isinstance(value, bytes | bytearray):
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
        return text if "".join(text.split()).isprintable() else f"0x{value.hex()}"
    return str(value)


if __name__ == "__main__":
    sys.exit(main())

"""Reads what an extension module says of itself: its machine, the libraries it needs, and which versions of them.

The format is ELF of 64 bits, little-endian, of shared objects ("System V Application Binary Interface", chapters 4 and
5; symbol versions: "Linux Standard Base Core Specification", section 10.7). Only what is asked here is read.
"""

import re
import struct
from dataclasses import dataclass

MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
MACHINES = {62: "x86_64", 183: "aarch64"}
SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry size
DYNAMIC, VERSION_NEED = 6, 0x6FFFFFFE  # types of sections
TAG = struct.Struct("<qQ")
NEEDED, RPATH, RUNPATH = 1, 15, 29  # tags of the dynamic section
NEED = struct.Struct("<HHIII")  # version, count, file, first entry, next
NEED_ENTRY = struct.Struct("<IHHII")  # hash, flags, other, name, next


class NotElf(ValueError):
    """These bytes are no such file."""


@dataclass(frozen=True)
class Elf:
    """machine: as `uname -m` calls it. needed: file names of libraries. versions: such as GLIBC_2.4."""

    machine: str
    needed: tuple[str, ...]
    versions: tuple[str, ...]
    run_path: str


def read_elf(data: bytes) -> Elf:
    """NotElf when it is none, or is cut off."""
    try:
        return _read(data)
    except (struct.error, IndexError) as error:
        raise NotElf(f"the file is cut off: {error}") from None


def newest_glibc(module: Elf) -> tuple[int, int]:
    """The newest version of glibc whose symbols a module needs; (0, 0): it needs none."""
    found = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version) for version in module.versions]
    return max(((int(each[1]), int(each[2])) for each in found if each), default=(0, 0))


def _read(data: bytes) -> Elf:
    if data[: len(MAGIC)] != MAGIC:
        raise NotElf("no ELF file of 64 bits")
    (machine,) = struct.unpack_from("<H", data, 18)
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [SECTION.unpack_from(data, at + size * number) for number in range(count)]
    needed, versions, run_path = list[str](), list[str](), ""
    for _, kind, _, _, offset, length, link, info, _, _ in sections:
        strings = sections[link][4] if link < len(sections) else 0
        if kind == DYNAMIC:
            for tag, value in TAG.iter_unpack(data[offset : offset + length - length % TAG.size]):
                if tag == NEEDED:
                    needed.append(_text(data, strings + value))
                elif tag in (RPATH, RUNPATH):
                    run_path = _text(data, strings + value)
        elif kind == VERSION_NEED:
            versions += _versions(data, offset, info, strings)
    return Elf(MACHINES.get(machine, f"machine {machine}"), tuple(needed), tuple(versions), run_path)


def _versions(data: bytes, at: int, files: int, strings: int) -> list[str]:
    """The names in a table of needed versions: an entry for each file, each with a list of its versions."""
    found = []
    for _ in range(files):
        _, count, _, first, after = NEED.unpack_from(data, at)
        entry = at + first
        for _ in range(count):
            _, _, _, name, next_entry = NEED_ENTRY.unpack_from(data, entry)
            found.append(_text(data, strings + name))
            entry += next_entry
        at += after
    return found


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()

"""Avro of strangers, read by a process of its own: what asks for too much ends there, and the limits end it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hubweir.portal import avro_reading
from hubweir.portal.avro_body import AvroText
from hubweir.portal.avro_reading import AvroLimits, read_files
from hubweir.portal.tests.avro_files import HOSTILE, ORDERS, bomb, bottomless, endless, greedy, made, orders

# A machine under load needs many times the time that a page has.
PATIENT = AvroLimits(page_ms=100_000)
CHARACTERS = 1_000
GOOD = "\n".join(json.dumps(order, indent=2, ensure_ascii=False) for order in ORDERS)


def read(*bodies: bytes, limits: AvroLimits = PATIENT) -> list[AvroText]:
    found = read_files(bodies, CHARACTERS, limits)
    assert len(found) == len(bodies)
    return found


def test_files_of_a_page_are_read_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = spy(monkeypatch)
    found = read(orders(), orders("deflate"), orders("xz"))
    assert [each.text for each in found] == [GOOD] * 3 and started == [1]
    assert found[1] == AvroText(GOOD, False, "record shop.Order", "deflate", "")
    assert read() == [] and started == [1]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_told_apart_from_its_neighbours(name: str) -> None:
    body, told = HOSTILE[name]
    found = read(orders(), body, orders())
    assert (found[0].text, found[2].text) == (GOOD, GOOD)
    assert told in found[1].problem and len(found[1].text) <= CHARACTERS


def test_a_bomb_meets_the_limit_of_memory() -> None:
    stopped, other = read(bomb(300 * 1024**2), orders())
    assert "more memory" in stopped.problem and stopped.text == "" and other.text == GOOD


def test_nothing_but_that_limit_stops_a_bomb() -> None:
    """The control arm of the test above."""
    small = bomb(64 * 1024**2)
    (tight,) = read(small, limits=AvroLimits(memory_bytes=64 * 1024**2, processor_s=60, page_ms=100_000))
    (roomy,) = read(small, limits=AvroLimits(memory_bytes=1024**3, processor_s=60, page_ms=100_000))
    assert "more memory" in tight.problem and tight.text == ""
    assert (roomy.problem, roomy.text) == ("", '""'), "what it holds is an empty value, and zeros behind it"


def test_a_claim_of_a_trillion_values_meets_one_limit_or_the_other() -> None:
    greed, other = read(greedy(), orders())
    assert "more memory" in greed.problem or "of a processor" in greed.problem
    assert other.text == GOOD


def test_an_endless_file_meets_the_limit_of_the_processor() -> None:
    ended, other = read(endless(), orders())
    assert ended.problem == "it takes more than 1 s of a processor to read" and other.text == GOOD


def test_without_that_limit_it_meets_the_time_of_the_page() -> None:
    """The control arm of the test above, and the limit of last resort."""
    ended, other = read(endless(), orders(), limits=AvroLimits(processor_s=1_000, page_ms=3_000))
    assert ended.problem == "it is not read within the 3 s of a page" and "used up" in other.problem


def test_a_file_that_breaks_the_reader_breaks_its_process_alone() -> None:
    broken, other = read(bottomless(), orders())
    assert broken.problem == "it nests deeper than can be read" and other.text == GOOD


def test_so_many_files_may_end_their_process_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    started = spy(monkeypatch)
    found = read(*[bottomless()] * 3, orders())
    assert ["nests" in each.problem for each in found] == [True, True, True, False]
    assert "used up" in found[3].problem and started == [3]


def test_a_page_whose_time_is_over_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = spy(monkeypatch)
    assert "used up" in read_files([orders()], CHARACTERS, AvroLimits(), time_left_ms=0)[0].problem and started == [0]


def test_a_large_file_is_given_and_its_answer_taken_whole() -> None:
    text = "é" * 400_000
    body = made("string", b"".join((avro_long(2 * len(text)), text.encode())))
    (found,) = read_files([body], 500_000, PATIENT)
    assert found.text == f'"{text}"' and not found.is_cut


def avro_long(value: int) -> bytes:
    from hubweir.capture.avro import long

    return long(value)


PROGRAMS = {
    "it ended the process that reads it (exit code 9)": "sys.exit(9)",
    "this system cannot limit": "sys.exit(3)",
    "fastavro is not installed": "sys.exit(4)",
    "(exit code -9)": "os.kill(os.getpid(), 9)",
    "answers otherwise": "sys.stdin.buffer.read(200_000); out.write(b'\\0\\0\\0\\3tea'); out.flush(); time.sleep(1000)",
    "answers otherwise than": "sys.stdin.buffer.read(200_000); said = b'{\"text\": \"%s\"}' % (b'x' * 10**6);"
    "out.write(len(said).to_bytes(4) + said)",
    "not read within": "time.sleep(1000)",
}  # fmt: skip


@pytest.mark.parametrize("told", PROGRAMS)
def test_a_process_that_dies_or_lies_is_told_and_none_is_left(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import os, sys, time; out = sys.stdout.buffer; {PROGRAMS[told]}")
    monkeypatch.setattr(avro_reading, "PROGRAM", program)
    processes = []
    begin = avro_reading._started
    monkeypatch.setattr(avro_reading, "_started", lambda *a: processes.append(begin(*a)) or processes[-1])
    limits = AvroLimits(page_ms=2_000 if "within" in told else 100_000)
    # More than a pipe holds, for a process that reads none of it.
    found = read(orders() + bytes(200_000), limits=limits)
    assert told in found[0].problem and found[0].text == ""
    assert processes and all(each.returncode is not None for each in processes)


def test_the_process_has_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBWEIR_KEY", "a key of the service")
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os, struct, sys\n"
        "sys.stdin.buffer.read(4)\n"
        "folder = '/proc/self/fd' if os.path.isdir('/proc/self/fd') else '/dev/fd'\n"
        "seen = {'text': json.dumps([sorted(set(os.environ) - {'LC_CTYPE'}), len(os.listdir(folder)), os.getcwd()])}\n"
        "said = json.dumps(seen).encode()\n"
        "sys.stdout.buffer.write(struct.pack('>I', len(said)) + said)\n"
    )
    monkeypatch.setattr(avro_reading, "PROGRAM", program)
    with open(os.devnull) as ours:
        os.set_inheritable(ours.fileno(), True)
        (found,) = read(orders())
    # Three streams, and the folder itself.
    assert json.loads(found.text) == [[], 4, "/"]


def spy(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many processes were started."""
    started, begin = [0], avro_reading._started

    def count(*arguments: object) -> object:
        started[0] += 1
        return begin(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(avro_reading, "_started", count)
    return started

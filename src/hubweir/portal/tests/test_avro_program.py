"""What the program says of a file; what stops it when a file asks for too much is tried in test_avro_reading.py."""

import datetime
import decimal
import json
import mmap
import resource
import uuid
from types import SimpleNamespace

import pytest

from hubweir.portal.avro_program import limit_process, limit_processor, read_file
from hubweir.portal.tests.avro_files import HOSTILE, ORDERS, made, orders, written


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_records_stand_one_below_the_other_as_json(codec: str) -> None:
    said = read_file(orders(codec), 10_000)
    assert said["text"] == "\n".join(json.dumps(order, indent=2, ensure_ascii=False) for order in ORDERS)
    assert (said["schema"], said["codec"], said["problem"], said["is_cut"]) == ("record shop.Order", codec, "", False)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ("bytes", b"tea\n", '"tea\\n"'),
        ("bytes", b"\xff\x00", '"0xff00"'),
        ("bytes", b"\x1b[31m", '"0x1b5b33316d"'),
        ({"type": "fixed", "name": "f", "size": 2}, b"\x00\x01", '"0x0001"'),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        ({"type": "int", "logicalType": "date"}, datetime.date(2026, 1, 31), '"2026-01-31"'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, decimal.Decimal("1.50"), '"1.50"'),
        ("double", float("inf"), "Infinity"),
        (["null", "string"], None, "null"),
        ({"type": "map", "values": "long"}, {"tea": 2}, '{\n  "tea": 2\n}'),
    ],
)
def test_a_value_that_json_lacks_is_shown_as_people_write_it(schema: object, value: object, text: str) -> None:
    assert read_file(written(schema, [value]), 1_000)["text"] == text


def test_what_is_long_is_cut_in_the_middle_of_a_record() -> None:
    said = read_file(orders(), 10)
    assert said["is_cut"] and said["text"] == '{\n  "dish"' and said["problem"] == ""
    assert read_file(written("string", ["x"] * 3), 11)["text"] == '"x"\n"x"\n"x"', "all of it has room"
    assert read_file(written("string", ["x"] * 3), 10)["is_cut"]


def test_a_trillion_records_of_no_bytes_are_cut_as_well() -> None:
    said = read_file(made("null", b"", count=2**40), 12)
    assert said["is_cut"] and said["text"] == "null\nnull\nnu"


def test_a_file_is_read_up_to_where_it_breaks_off() -> None:
    whole = made("string", b"\x06tea")
    said = read_file(whole + whole[-20:-18], 1_000)
    assert said["text"] == '"tea"' and said["problem"].startswith("EOFError")


def test_a_file_without_records_says_its_schema() -> None:
    said = read_file(written(["null", "string"], []), 1_000)
    assert (said["text"], said["schema"], said["problem"]) == ("", "union", "")


@pytest.mark.parametrize("name", [name for name, (_, told) in HOSTILE.items() if told])
def test_what_is_no_file_is_told_in_a_few_words(name: str) -> None:
    body, told = HOSTILE[name]
    said = read_file(body, 1_000)
    assert told in said["problem"] and len(said["problem"]) <= 300 and said["text"] == ""


def test_each_body_has_seconds_of_its_own_whatever_those_before_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda *limit: taken.append(limit))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2, 60))
    for user_s, system_s in ((0.2, 0.1), (3.5, 0.7)):
        used = SimpleNamespace(ru_utime=user_s, ru_stime=system_s)
        monkeypatch.setattr(resource, "getrusage", lambda _, used=used: used)
        limit_processor(1)
    assert taken == [(resource.RLIMIT_CPU, (2, 60)), (resource.RLIMIT_CPU, (6, 60))]


def test_a_system_that_forgets_its_limit_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    monkeypatch.setattr(resource, "setrlimit", lambda *limit: taken.append(limit))
    assert not limit_process(1024 * 1024), "the mapping that must fail did not"
    assert dict(taken) == {
        resource.RLIMIT_AS: (1024 * 1024,) * 2,
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
    }

    def refuses(*_: object) -> mmap.mmap:
        raise MemoryError

    monkeypatch.setattr(mmap, "mmap", refuses)
    assert limit_process(1024 * 1024), "the control: the system holds it"

    def not_permitted(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "setrlimit", not_permitted)
    assert not limit_process(1024 * 1024)

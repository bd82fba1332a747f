"""The examples of the pages about Spark run, against a hub and files of their own."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import pytest

from hubweir.capture.avro import SCHEMA
from hubweir.spark.known_options import OF_THE_SINK, OF_THE_SOURCE
from tests.spark.live_hub import Hub

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text() for name in ("spark", "spark_write", "spark_limits")}
PAGE = "\n".join(PAGES.values())
# Of each page one program: a later block goes on where the one before stopped.
EXAMPLES = {
    name: "\n".join(blocks)
    for name, page in PAGES.items()
    if (blocks := re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
}
# As the page prints it, in two pieces.
TEXT = re.compile(r'TEXT = \(\n(?:    "[^"\n]*"\n)+\)\n')
# Those that the page says to make.
HUBS = re.findall(r"^\$ \./run hubweir eventhub create ([a-z]+)$", PAGE, re.MULTILINE)


def put_captured_file(folder: Path) -> None:
    """Where the examples read one: there is no event in it."""
    path = folder / "hubweir-data" / "capture" / "ns" / "orders" / "0" / "2026/01/31/12/05/00.avro"
    path.parent.mkdir(parents=True)
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(json.loads(SCHEMA)), [])
    path.write_bytes(out.getvalue())


@pytest.mark.parametrize("page", EXAMPLES)
def test_example_runs(
    page: str, spark: SparkSession, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_captured_file(tmp_path)
    own = TEXT.sub(lambda _: f"TEXT = {hub.namespace.connection_string()!r}\n", EXAMPLES[page])
    for name in HUBS:
        if f'"{name}"' in own:
            hub.namespace.create_event_hub(f"{hub.name}-{name}", partition_count=2)
            own = own.replace(f'"{name}"', repr(f"{hub.name}-{name}"))
    for name in ("checkpoint", "kitchen-checkpoint", "serve-checkpoint", "lake", "hubweir-data/capture"):
        own = own.replace(f'"{name}"', repr(str(tmp_path / name)))
    exec(compile(own, f"docs/{page}.md", "exec"), {"__name__": "example"})


def test_there_are_examples_and_every_option_is_told() -> None:
    assert list(EXAMPLES) == ["spark", "spark_write"] and len(HUBS) == 3
    assert [name for name in (*OF_THE_SOURCE, *OF_THE_SINK) if f"`{name}`" not in PAGE] == []

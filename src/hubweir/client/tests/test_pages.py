"""The examples of the client's pages run, each against a hub of its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.client.event_hub_client import EventHubClient
from hubweir.testing.running_namespace import RunningNamespace

DOCS = Path(__file__).resolve().parents[4] / "docs"
# As the pages print it, in two pieces.
TEXT = re.compile(r'TEXT = \(\n(?:    "[^"\n]*"\n)+\)\n')
# Each page has a hub of its own, so that no page's events stand in another's way.
HUBS = {"client": "greetings", "event_processor": "numbers"}


def examples() -> list[tuple[str, str]]:
    """Return name and code of every Python block of the pages."""
    return [
        (f"{page}-{number}", code)
        for page in HUBS
        for number, code in enumerate(
            re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
        )
    ]


@pytest.mark.parametrize(("name", "code"), examples(), ids=[name for name, _ in examples()])
def test_example_runs(
    name: str,
    code: str,
    namespace: RunningNamespace,
    new_hub: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    hub = new_hub()
    own, places = TEXT.subn(f"TEXT = {namespace.connection_string()!r}\n", code)
    assert places == 1
    hub_of_the_page = f'"{HUBS[name.partition("-")[0]]}"'
    assert hub_of_the_page in own
    exec(compile(own.replace(hub_of_the_page, repr(hub)), name, "exec"), {"__name__": name})
    assert last_sequence_number(namespace, hub) >= 0  # it did send something


def last_sequence_number(namespace: RunningNamespace, hub: str) -> int:
    async def ask() -> int:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            return (await client.partition("0")).last_sequence_number

    return asyncio.run(ask())


def test_there_are_examples_and_each_page_tells_how_to_make_its_hub() -> None:
    assert len(examples()) == 3
    for page, hub in HUBS.items():
        assert f"./run hubweir eventhub create {hub}" in (DOCS / f"{page}.md").read_text()

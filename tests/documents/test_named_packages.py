"""A page tells its reader, in a checkout and in an installation, to install whatever its Python imports.

Whether that is enough to run it shows test_fresh_environment.py, which takes longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.named_packages import EXTRAS, Way, imported, not_brought, told
from tests.documents.page_examples import DOCS, ROOT, example

README = ROOT / "README.md"
WITH_PYTHON = [page for page in (README, *sorted(DOCS.glob("*.md"))) if example(page.read_text())]
QUEUES_CLIENT = ["azure.servicebus"]
QUEUES = "```python\nfrom azure.servicebus import ServiceBusClient\n```\n"


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_a_page_tells_to_install_whatever_its_examples_import(page: Path, way: Way) -> None:
    text = page.read_text()
    assert not_brought(text, example(text), way) == []


def test_names_are_found_on_pages_and_told_apart_by_the_ways() -> None:
    assert told((DOCS / "arm.md").read_text(), Way.INSTALLATION) == {"azure-mgmt-eventhub"}
    assert told((DOCS / "arm.md").read_text(), Way.CHECKOUT) == {"azure-mgmt-eventhub", *EXTRAS["demo"]}
    assert told((DOCS / "install.md").read_text(), Way.INSTALLATION) == {"hubweir[spark]"}  # no wheel, no file
    third_party = {
        page.name
        for page in WITH_PYTHON
        if any(module.partition(".")[0] == "azure" for module in imported(example(page.read_text())))
    }
    assert {"README.md", "arm.md", "cli.md", "queue.md", "testing.md", "tls.md"} <= third_party
    for name in third_party:
        text = (README if name == "README.md" else DOCS / name).read_text()
        assert all(told(text, way) for way in Way), name


@pytest.mark.parametrize(
    ("sentence", "way", "missing"),
    [
        ("", Way.INSTALLATION, QUEUES_CLIENT),
        ("", Way.CHECKOUT, QUEUES_CLIENT),
        ("`pip install azure-eventhub`", Way.INSTALLATION, QUEUES_CLIENT),  # it has another part of `azure`
        ("`pip install azure-servicebus`", Way.CHECKOUT, QUEUES_CLIENT),
        ("`./run python -m pip install azure-servicebus`", Way.INSTALLATION, QUEUES_CLIENT),
        ("pip install azure-servicebus", Way.INSTALLATION, QUEUES_CLIENT),  # no command, as it is written
        ("`pip install -r azure-servicebus`", Way.INSTALLATION, QUEUES_CLIENT),
        ("`pip install no-such-package-anywhere`", Way.INSTALLATION, QUEUES_CLIENT),
        ("`./run python`", Way.INSTALLATION, QUEUES_CLIENT),
        ("\n```console\n$ npm install azure-servicebus\n```\n", Way.INSTALLATION, QUEUES_CLIENT),
        ("`pip install\nazure-eventhub azure-servicebus`", Way.INSTALLATION, []),
        ("\n```console\n$ venv/bin/pip install azure-servicebus\n```\n", Way.INSTALLATION, []),
        ("\n```text\n`pip install azure-servicebus`\n```\n", Way.INSTALLATION, QUEUES_CLIENT),
        ("\n```console\n$ pip install azure-eventhub # azure-servicebus\n```\n", Way.INSTALLATION, QUEUES_CLIENT),
        ("`./run python`", Way.CHECKOUT, []),
        ("`./run python -m pip install azure-servicebus`", Way.CHECKOUT, []),
    ],
)
def test_control_arm_a_page_that_never_names_its_package_is_found(sentence: str, way: Way, missing: list[str]) -> None:
    text = f"{sentence}\n{QUEUES}"
    assert not_brought(text, example(text), way) == missing


@pytest.mark.parametrize(
    ("program", "sentence", "missing"),
    [
        ("import fastavro, time", "", []),  # hubweir requires it
        ("def f():\n    import pytest", "", ["pytest"]),
        ("import azure.core.credentials", "`pip install azure-eventhub`", []),  # azure-eventhub requires azure-core
        ("import aiohttp", "`pip install azure-eventhub`", ["aiohttp"]),  # of its own it does so for an extra alone
        ("import websocket", "`pip install websocket-client`", []),
        ("import typing_extensions", "`pip install azure-eventhub`", []),  # a module that is one file
        ("import _cffi_backend", "", []),  # and one that is compiled
        ("from azure import servicebus", "`pip install azure-servicebus`", ["azure"]),  # whose this is, nobody knows
        ("import hubweir.spark", "", ["hubweir.spark"]),
        ("import hubweir.sparkle, hubweir.client", "", []),
        ("from hubweir.pipelines.runner import run", "`pip install 'hubweir[spark]'`", []),
        ("from hubweir.pipelines.runner import run", "`pip install 'hubweir[traces]'`", ["hubweir.pipelines.runner"]),
    ],
)
def test_a_module_is_brought_by_whom_its_package_comes_with(program: str, sentence: str, missing: list[str]) -> None:
    assert not_brought(sentence, program, Way.INSTALLATION) == missing

"""The Python example of every page about a noun runs as it stands."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# These are run elsewhere, with a server that their connection string names, or line by line.
ELSEWHERE = {
    *("client.md", "event_processor.md", "http.md", "pipelines.md", "spark.md", "spark_write.md", "throughput_unit.md"),
}


def example(page: Path) -> str:
    """The page's Python blocks as one program: a later block goes on where the one before stopped."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))


PAGES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in ELSEWHERE and example(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_runs(page: Path) -> None:
    environment = {"PYTHONPATH": str(DOCS.parent / "src")}
    done = subprocess.run(
        [sys.executable, "-c", example(page)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_examples_import_what_run_python_has() -> None:
    pinned = set(re.findall(r"^([\w.-]+)==", (DOCS.parent / "requirements/demo.txt").read_text(), re.MULTILINE))
    whose = packages_distributions()
    for page in PAGES:
        for module in set(re.findall(r"^(?:import|from) (\w+)", example(page), re.MULTILINE)):
            known = module == "hubweir" or module in sys.stdlib_module_names
            assert known or pinned & set(whose[module]), f"{page.name} imports {module}, which no pin brings"


def test_nouns_have_examples() -> None:
    assert {page.stem for page in PAGES} >= {
        *("event_hub", "partition", "consumer_group", "namespace", "shared_access_signature", "publisher_policy"),
        *("queue", "topic", "subscription", "rule", "message_session", "dead_letters", "duplicate_detection"),
        "transaction",
    }

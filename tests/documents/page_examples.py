"""The Python of a page, and how it runs: all its blocks are one program, in a process of its own."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# These are run elsewhere, with a server that their connection string names, or line by line.
ELSEWHERE = {
    *("client.md", "event_processor.md", "http.md", "pipelines.md", "spark.md", "spark_write.md", "throughput_unit.md"),
}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The package of the checkout, and nothing else of this process's.
OF_THE_CHECKOUT = {"PYTHONPATH": str(ROOT / "src")}
RUN_S = 100  # an example needs a tenth of that where no other test runs


def example(text: str) -> str:
    """The page's Python blocks as one program: a later block goes on where the one before stopped."""
    program = "\n".join(BLOCK.findall(text))
    return doctest.script_from_examples(program) if program.startswith(">>> ") else program


PAGES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in ELSEWHERE and example(page.read_text())]


def run_example(
    program: str,
    *,
    python: str | Path = sys.executable,
    environment: Mapping[str, str] = OF_THE_CHECKOUT,
    folder: Path | None = None,
    limit_s: float = RUN_S,
) -> str:
    """Run it in the folder. See said_by."""
    return said_by([python, "-c", program], environment=environment, folder=folder, limit_s=limit_s)


def said_by(
    command: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path | None, limit_s: float
) -> str:
    """Run it in the folder; the empty text where it ended well, else what it said of its end."""
    done = subprocess.run(
        command,
        env=dict(environment),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    return done.stderr or f"exit code {done.returncode}" if done.returncode else ""

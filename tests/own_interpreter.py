"""Runs a test marked own_interpreter in a pytest of its own, and a file whose pytestmark says so in one for all of it.

Such a test counts the objects that a step makes, or what a collection looks at. A service that an earlier test of the
same worker left running makes objects, too, in its own thread, and these would be counted with the step's; and a worker
holds 20,000 tests, which a collection would look at.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

IS_CHILD = "HUBWEIR_TEST_OWN_INTERPRETER"
LIMIT_S = 100


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Answer for a marked test with what it does in a new interpreter; leave every other test to pytest."""
    if not pyfuncitem.get_closest_marker("own_interpreter") or IS_CHILD in os.environ:
        return None
    module = pyfuncitem.getparent(pytest.Module)
    assert module is not None
    is_whole = any(mark.name == "own_interpreter" for mark in module.own_markers)
    asked = module.nodeid if is_whole else pyfuncitem.nodeid
    outcomes, output = outcomes_apart(pyfuncitem.config.rootpath, asked)
    outcome = outcomes.get(pyfuncitem.name)
    if outcome == "skipped":
        pytest.skip(output)
    if outcome != "passed":
        pytest.fail(output, pytrace=False)
    return True


@cache
def outcomes_apart(root: Path, asked: str) -> tuple[dict[str, str], str]:
    """What each test of a file, or one alone, does in a pytest of its own: by its name, "passed" or another word; and
    all that was printed.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ["-q", "-n", "0", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.xml"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-o", "junit_logging=no", f"--junit-xml={told}", asked],
            cwd=root,
            env={**environ, IS_CHILD: "1", "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        cases = ElementTree.parse(told).iter("testcase") if told.exists() else ()
        outcomes = {str(case.get("name")): case[0].tag if len(case) else "passed" for case in cases}
    return outcomes, done.stdout + done.stderr

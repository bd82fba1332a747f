"""Runs a test marked own_interpreter in a pytest of its own.

Such a test counts the objects that a step makes. A service that an earlier test of the same worker left running
makes objects, too, in its own thread, and these would be counted with the step's.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

IS_CHILD = "HUBWEIR_TEST_OWN_INTERPRETER"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Answer for a marked test with what it does in a new interpreter; leave every other test to pytest."""
    if not pyfuncitem.get_closest_marker("own_interpreter") or IS_CHILD in os.environ:
        return None
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    root = pyfuncitem.config.rootpath
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", pyfuncitem.nodeid],
        cwd=root,
        env={**environ, IS_CHILD: "1", "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
        capture_output=True,
        text=True,
        timeout=100,
    )
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
    return True

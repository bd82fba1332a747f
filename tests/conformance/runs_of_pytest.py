"""Several runs of pytest in one process, which imports once what they share: that is two seconds of a processor a run.

Workers of a run are processes of their own, as ever.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 280
NEXT = "-- the next run of pytest --\n"
PROGRAM = """
import json, sys, traceback, pytest
for arguments in json.loads(sys.argv[1]):
    try:
        pytest.main(arguments)
    except Exception:  # of a plugin; the other runs go on
        traceback.print_exc()
    sys.stdout.flush()
    print(sys.argv[2], end="", flush=True)
"""


def runs_of_pytest(runs: Sequence[Sequence[str]], path: Sequence[Path] = ()) -> list[str]:
    """What each run prints, by its arguments. path: folders whose modules the runs can import."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    arguments = [["-p", "no:cacheprovider", *each] for each in runs]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(arguments), NEXT],
        cwd=ROOT,
        env={**environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT / "src", ROOT]))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    *printed, rest = done.stdout.split(NEXT)
    assert (done.returncode, len(printed)) == (0, len(runs)), rest
    return printed

"""One process at a time works on a table, and who was killed is in nobody's way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hubweir.pipelines.lake.table_lock import locked

HOLD = """
import sys
from pathlib import Path
from hubweir.pipelines.lake.table_lock import locked
with locked(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.read()
"""


def test_a_table_is_one_process_alone_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"True\n"
        with locked(tmp_path) as is_ours:
            assert not is_ours
        other.kill()
    with locked(tmp_path) as is_ours:
        assert is_ours
        with locked(tmp_path) as again:
            assert not again, "nor has another thread"


def test_a_table_that_is_not_there_is_nobodys(tmp_path: Path) -> None:
    with locked(tmp_path / "lake") as is_ours:
        assert not is_ours
    assert not (tmp_path / "lake").exists()

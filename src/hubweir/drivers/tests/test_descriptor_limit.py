"""The limit of open files: asked for in a process of its own, since a hard limit cannot be raised again."""

import subprocess
import sys

SCRIPT = """
import resource, logging
from hubweir.drivers.descriptor_limit import raise_descriptor_limit
logging.basicConfig()
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(raise_descriptor_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def limits(soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(soft=soft, hard=hard)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)


def test_the_soft_limit_becomes_the_hard_one() -> None:
    done = limits(256, 2048)
    assert done.stdout.split() == ["2048", "2048"]
    assert done.stderr == ""


def test_a_hard_limit_that_is_too_small_is_told() -> None:
    done = limits(100, 200)
    assert done.stdout.split() == ["200", "200"]
    assert "only 200 files and connections may be open" in done.stderr

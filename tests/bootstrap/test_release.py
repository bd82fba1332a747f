"""A release is whole and serves; a wheel that is not what its name says is found before anybody gets it."""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from bootstrap import verbs
from bootstrap.elf import Elf
from bootstrap.environment import Environment, NotReady
from bootstrap.release import TARGETS, Broken, check, trouble_of
from bootstrap.tried_wheel import WheelFailed, try_wheel

ROOT = Path(__file__).resolve().parents[2]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
GNU, ARM, MUSL = TARGETS[0], TARGETS[1], TARGETS[2]
GOOD = Elf("x86_64", ("libc.so.6",), ("GLIBC_2.2.5", "GLIBC_2.14"), "")


def wheel(folder: Path, *names: str, module: bytes = b"") -> Path:
    path = folder / "hubweir-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, module if name.endswith(".so") else b"")
    return path


def test_a_wheel_without_its_kernels_or_with_tests_is_found(tmp_path: Path) -> None:
    check(wheel(tmp_path, "hubweir/__init__.py", "hubweir/kernels/keys/_keys.pyx"), None)
    with pytest.raises(Broken, match="these kernels"):
        check(wheel(tmp_path, "hubweir/kernels/keys/_keys.pyx"), GNU)
    with pytest.raises(Broken, match="has tests in it: hubweir/auth/tests/test_plain.py"):
        check(wheel(tmp_path, "hubweir/auth/tests/test_plain.py"), None)


@pytest.mark.parametrize(
    ("module", "target", "trouble"),
    [
        (GOOD, GNU, ""),
        (Elf("x86_64", ("libc.so",), (), ""), MUSL, ""),
        (GOOD, ARM, "is for x86_64, not for aarch64"),
        (GOOD, MUSL, "needs libc.so.6"),
        (Elf("x86_64", ("libc.so.6", "libstdc++.so.6"), (), ""), GNU, "needs libstdc"),
        (Elf("x86_64", ("libc.so.6",), ("GLIBC_2.34",), ""), GNU, "needs glibc 2.34, newer than 2.17"),
        (Elf("x86_64", ("libc.so.6",), (), "/home/somebody/lib"), GNU, "a folder of the machine that built it"),
    ],
)
def test_a_module_that_would_not_run_on_its_platform_is_found(module: Elf, target, trouble: str) -> None:
    found = trouble_of(module, target)
    assert trouble in found
    assert bool(trouble) == bool(found)


def test_what_does_not_serve_fails_the_trial(tmp_path: Path) -> None:
    """The environment of the tests, said to have no compiled kernels or a broken program."""
    binaries = Path(sys.executable).parent
    with pytest.raises(WheelFailed, match="without 'no such kernels'"):
        try_wheel(binaries, "no such kernels")
    (tmp_path / "python").symlink_to("/bin/true")
    (tmp_path / "hubweir").write_text("#!/bin/sh\necho it is broken\nexit 3\n")
    (tmp_path / "hubweir").chmod(0o755)
    with pytest.raises(WheelFailed, match="it is broken"):
        try_wheel(tmp_path, "")


def test_a_python_that_no_version_is_for_is_refused_before_anything_is_built(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        verbs.run("release", ["--python", "3.9"], Environment(ROOT))
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_release_is_whole_and_each_wheel_of_this_machine_serves(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    if Environment(ROOT).uv() is None:
        pytest.skip("NOT RUN: no uv is here")
    try:
        assert verbs.run("release", ["--dist", str(dist), "--python", HERE], Environment(ROOT)) == 0
    except NotReady as error:
        if "there is none of CPython" not in str(error):
            raise
        pytest.skip(f"NOT RUN: {error}")
    names = {path.name for path in dist.iterdir()}
    assert len(names) == len(TARGETS) + 4
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        names.remove(name)
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    assert names == {"SHA256SUMS"}
    [bill] = dist.glob("*.cdx.json")
    listed = {each["name"] for each in json.loads(bill.read_text())["components"]}
    pinned = (ROOT / "requirements" / "run.txt").read_text()
    assert {"click", "cryptography", "uvicorn"} <= listed
    # Names of distributions are alike in any case, with "-" as with "_". (Python Packaging, Names and normalization)
    assert all(f"{name.lower().replace('_', '-')}==" in pinned for name in listed - {"hubweir"})
    for path in dist.glob("*.whl"):
        text = path.read_bytes()
        assert str(ROOT).encode() not in text

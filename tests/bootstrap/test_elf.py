"""What is read of an extension module agrees with what made it, and bytes that are none are refused."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap.elf import Elf, NotElf, newest_glibc, read_elf

SOURCE = '#include <math.h>\n#include <stdio.h>\ndouble root(double x) { puts("x"); return pow(x, 0.5) + exp(x); }\n'


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared object of this machine that needs libm and has a run path."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("NOT RUN: no C compiler of Linux is here")
    folder = tmp_path_factory.mktemp("elf")
    (folder / "root.c").write_text(SOURCE)
    made = folder / "root.so"
    options = ["-shared", "-fPIC", "-fno-builtin", "-Wl,-rpath,/nowhere", "-Wl,--no-as-needed"]
    subprocess.run([compiler, *options, folder / "root.c", "-lm", "-o", made], check=True, timeout=60)
    return made


def test_machine_libraries_versions_and_run_path_are_those_that_the_linker_wrote(module: Path) -> None:
    import platform

    found = read_elf(module.read_bytes())
    assert found.machine == platform.machine()
    assert {"libm.so.6", "libc.so.6"} <= set(found.needed)
    assert found.run_path == "/nowhere"
    said = subprocess.run(["objdump", "-p", module], capture_output=True, text=True, check=False, timeout=60)
    if said.returncode == 0:
        assert set(found.versions) == {word for word in said.stdout.split() if word.startswith("GLIBC_")}
    assert newest_glibc(found) >= (2, 2)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x7fELF\x01\x01" + bytes(100)])
def test_bytes_that_are_no_such_file_are_refused(data: bytes) -> None:
    with pytest.raises(NotElf):
        read_elf(data)


def test_a_file_that_is_cut_off_is_refused(module: Path) -> None:
    data = module.read_bytes()
    for size in (6, 40, 63, len(data) // 2, len(data) - 1):  # its table of sections stands at its end
        with pytest.raises(NotElf):
            read_elf(data[:size])


@pytest.mark.parametrize(
    ("versions", "newest"),
    [((), (0, 0)), (("GLIBC_2.2.5", "GLIBC_2.14"), (2, 14)), (("GLIBC_2.9", "GLIBC_2.17", "GCC_3.0"), (2, 17))],
)
def test_versions_are_compared_as_numbers(versions: tuple[str, ...], newest: tuple[int, int]) -> None:
    assert newest_glibc(Elf("x86_64", (), versions, "")) == newest

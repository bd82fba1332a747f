"""./run release: makes what a version is handed out as, into dist/, and tries each wheel that this machine can run.

    hubweir-VERSION.tar.gz                    the source distribution; every wheel below is built from it
    hubweir-VERSION-cp3NN-cp3NN-PLATFORM.whl  compiled kernels: one for each CPython that is here, and each TARGET
    hubweir-VERSION-py3-none-any.whl          without compiled code, for every other Python and platform
    hubweir-VERSION.cdx.json                  a software bill of materials: what an installation consists of
    SHA256SUMS                                checksums of all of these, as `sha256sum --check` reads them

Zig's C compiler makes the kernels of all targets: it brings each target's C library, so that this machine need not be
any of them. A wheel for this machine is installed into a fresh environment, with the pinned dependencies, and has to
serve: an event and a message go in and out, by the command line. The others are looked at: machine, needed C library.
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bootstrap import pip_settings
from bootstrap.elf import Elf, newest_glibc, read_elf
from bootstrap.environment import Environment, NotReady
from bootstrap.steps import StepFailed, say, step
from bootstrap.tried_wheel import WheelFailed, try_wheel

REQUIREMENTS = "release.txt"
# CPythons that a version is for: those of them that are found get their wheels.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST_GLIBC = (2, 17)


class Broken(Exception):
    """What was built is not what it has to be; the text says which file, and how."""


@dataclass(frozen=True)
class Target:
    """A platform of wheels. zig: the compiler's name of it; library: gnu or musl, as in names of extension modules."""

    platform_tag: str
    zig: str
    machine: str
    library: str

    @property
    def is_here(self) -> bool:
        """Whether this machine can run what is built for it."""
        here = "gnu" if platform.libc_ver()[0] == "glibc" else "musl"
        return sys.platform == "linux" and (self.machine, self.library) == (platform.machine(), here)


TARGETS = (
    Target("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17", "x86_64", "gnu"),
    Target("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17", "aarch64", "gnu"),
    Target("musllinux_1_2_x86_64", "x86_64-linux-musl", "x86_64", "musl"),
    Target("musllinux_1_2_aarch64", "aarch64-linux-musl", "aarch64", "musl"),
)


@dataclass(frozen=True)
class Interpreter:
    """A CPython of this machine, and the environment that builds with it. version: such as 3.11."""

    version: str
    python: Path

    @property
    def tag(self) -> str:
        return "cp" + self.version.replace(".", "")


def release(arguments: Sequence[str], env: Environment) -> int:
    """Make everything into dist/. 0 when it is whole and every wheel that was tried serves."""
    chosen = options().parse_args(arguments)
    uv = env.uv()
    if uv is None:
        raise NotReady("a release is made with uv, and uv cannot be had here")
    try:
        with tempfile.TemporaryDirectory(prefix="hubweir-release-") as folder:
            made = Release(env, uv, Path(folder), chosen.dist.absolute())
            made.make(chosen.python or PYTHONS)
    except (StepFailed, Broken, WheelFailed) as error:
        raise NotReady(f"{error}\nthere is no release: {chosen.dist} is not whole") from None
    return 0


def options() -> argparse.ArgumentParser:
    """What ./run release takes."""
    parser = argparse.ArgumentParser(prog="./run release", description="Wheels, source distribution, checksums.")
    parser.add_argument("--dist", metavar="DIR", type=Path, default=Path("dist"), help="where to (default: dist)")
    parser.add_argument(
        "--python",
        metavar="3.NN",
        action="append",
        choices=PYTHONS,
        help="wheels of this CPython alone; may be repeated",
    )
    return parser


class Release:
    """The making of one release. folder: temporary."""

    def __init__(self, env: Environment, uv: str, folder: Path, dist: Path) -> None:
        self._env = env
        self._uv = uv
        self._folder = folder
        self._dist = dist

    def make(self, versions: Sequence[str]) -> None:
        shutil.rmtree(self._dist, ignore_errors=True)
        self._dist.mkdir(parents=True)
        interpreters = list(self._interpreters(versions))
        if not interpreters:
            raise NotReady(f"there is none of CPython {', '.join(versions)} on the PATH")
        first = interpreters[0]
        source = self._source_distribution(first)
        for interpreter in interpreters:
            for target in TARGETS:
                check(self._wheel(interpreter, source, target), target)
        check(self._wheel(first, source, None), None)
        for interpreter in interpreters:
            self._try(interpreter)
        self._write_bill(first)
        self._write_checksums()
        say(f"{len(list(self._dist.iterdir()))} files in {self._dist}")

    def _interpreters(self, versions: Sequence[str]) -> Iterator[Interpreter]:
        """An environment with the tools for each CPython that is found."""
        for version in versions:
            found = subprocess.run(
                [self._uv, "python", "find", "--no-project", "--system", f"cpython=={version}.*"],
                capture_output=True, text=True, check=False, env=self._env.environ,
            )  # fmt: skip
            if found.returncode:
                say(f"no CPython {version} here: no wheels are made for it")
                continue
            place = self._folder / f"build-{version}"
            self._step(
                f"making a place to build for {version}", [self._uv, "venv", "--python", found.stdout.strip(), place]
            )
            self._install(f"fetching what builds for {version}", place, REQUIREMENTS)
            yield Interpreter(version, place / "bin" / "python")

    def _source_distribution(self, interpreter: Interpreter) -> Path:
        """Make it, and unpack it: the folder."""
        self._step(
            "making the source distribution",
            [interpreter.python, "-m", "build", "--sdist", "--no-isolation", "--outdir", self._dist, self._env.root],
            HUBWEIR_KERNELS="none",
        )
        [archive] = self._dist.glob("hubweir-*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(self._folder / "source", filter="data")
        [source] = (self._folder / "source").iterdir()
        return source

    def _wheel(self, interpreter: Interpreter, source: Path, target: Target | None) -> Path:
        """Build one wheel; target: None is the one without compiled code."""
        before = set(self._dist.glob("*.whl"))
        command: list[str | Path] = [
            interpreter.python,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            self._dist,
        ]
        variables = {"HUBWEIR_KERNELS": "none"}
        if target is not None:
            suffix = f".cpython-{interpreter.tag[2:]}-{target.machine}-linux-{target.library}.so"
            compiler = f"{interpreter.python} -m ziglang cc -target {target.zig} -fno-sanitize=undefined"
            variables = {
                "HUBWEIR_KERNELS": "required",
                "SETUPTOOLS_EXT_SUFFIX": suffix,
                "CC": compiler,
                "LDSHARED": f"{compiler} -shared -s",
                "ZIG_GLOBAL_CACHE_DIR": str(self._folder / "zig"),
            }
            command.append(f"--config-setting=--build-option=--plat-name={target.platform_tag}")
        shutil.rmtree(source / "build" / "lib", ignore_errors=True)
        for place in (source / "build").glob("lib.*"):  # setuptools would put the last target's modules into this wheel
            shutil.rmtree(place)
        name = f"{interpreter.version}, {target.platform_tag}" if target else "every Python, without compiled code"
        self._step(f"building the wheel for {name}", [*command, source], **variables)
        [wheel] = set(self._dist.glob("*.whl")) - before
        return wheel

    def _try(self, interpreter: Interpreter) -> None:
        """Install each wheel that this interpreter can run into a fresh environment, and have it serve."""
        here = [target.platform_tag for target in TARGETS if target.is_here]
        for wheel in sorted(self._dist.glob("*.whl")):
            is_pure = wheel.stem.endswith("-py3-none-any")
            if not is_pure and not any(wheel.stem.endswith(f"-{interpreter.tag}-{tag}") for tag in here):
                continue
            place = self._folder / f"try-{interpreter.version}-{'pure' if is_pure else 'compiled'}"
            self._step(
                f"making an environment for {wheel.name}", [self._uv, "venv", "--python", interpreter.python, place]
            )
            self._install(f"installing dependencies for {interpreter.version}", place, "run.txt")
            install: list[str | Path] = [self._uv, "pip", "install", "--python", place / "bin" / "python"]
            self._step(f"installing {wheel.name}", [*install, "--no-deps", "--no-index", wheel])
            try_wheel(place / "bin", "pure" if is_pure else "compiled")
            say(f"{wheel.name} serves on CPython {interpreter.version}")

    def _write_bill(self, interpreter: Interpreter) -> None:
        place = self._folder / f"try-{interpreter.version}-compiled"
        place = place if place.exists() else self._folder / f"try-{interpreter.version}-pure"
        [archive] = self._dist.glob("hubweir-*.tar.gz")
        bill = self._dist / f"{archive.name.removesuffix('.tar.gz')}.cdx.json"
        self._step(
            "writing the bill of materials",
            [interpreter.python, "-m", "cyclonedx_py", "environment", "--output-reproducible",
             "--pyproject", self._env.root / "pyproject.toml", "--output-file", bill, place],
        )  # fmt: skip

    def _write_checksums(self) -> None:
        lines = [
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(self._dist.iterdir())
        ]
        (self._dist / "SHA256SUMS").write_text("".join(lines))

    def _install(self, title: str, place: Path, requirements: str) -> None:
        extra = pip_settings.uv_options(self._env.settings)
        pins = self._env.root / "requirements" / requirements
        install: list[str | Path] = [self._uv, "pip", "install", "--python", place / "bin" / "python", *extra]
        self._step(title, [*install, "--require-hashes", "-r", pins])

    def _step(self, title: str, command: Sequence[str | Path], **variables: str) -> None:
        environ = self._env.environ | pip_settings.for_uv(self._env.settings, self._env.environ) | self._same_time()
        log = self._env.home / "log" / "release.txt"
        step(title, command, log=log, environ=environ | variables, cwd=self._folder)

    def _same_time(self) -> dict[str, str]:
        """Files in archives have the time of the commit, so that the same sources make the same bytes."""
        asked = ["git", "-C", os.fspath(self._env.root), "log", "-1", "--format=%ct"]
        try:
            time = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return {}
        return {"SOURCE_DATE_EPOCH": time}


def check(wheel: Path, target: Target | None) -> None:
    """Broken when a wheel is for another platform than its name says, lacks a kernel, or has tests in it."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        modules = {name: read_elf(packed.read(name)) for name in names if name.endswith(".so")}
    kernels = {name.removesuffix(".pyx") for name in names if name.endswith(".pyx")}
    built = {name.partition(".")[0] for name in modules}
    if built != (kernels if target is not None else set()):
        raise Broken(f"{wheel.name} has the compiled modules {sorted(built)}, and these kernels: {sorted(kernels)}")
    if tests := [name for name in names if "/tests/" in name]:
        raise Broken(f"{wheel.name} has tests in it: {tests[0]}")
    for name, module in modules.items():
        if target is not None and (trouble := trouble_of(module, target)):
            raise Broken(f"{name} of {wheel.name} {trouble}")


def trouble_of(module: Elf, target: Target) -> str:
    """What keeps an extension module from running on its target; empty: nothing."""
    if module.machine != target.machine:
        return f"is for {module.machine}, not for {target.machine}"
    if module.run_path:
        return f"looks for libraries in {module.run_path}, a folder of the machine that built it"
    expected = {"gnu": "libc.so.6", "musl": "libc.so"}[target.library]
    if foreign := [each for each in module.needed if each not in (expected, "libm.so.6")]:
        return f"needs {', '.join(foreign)}, which not every such system has"
    if (newest := newest_glibc(module)) > OLDEST_GLIBC:
        return f"needs glibc {newest[0]}.{newest[1]}, newer than {OLDEST_GLIBC[0]}.{OLDEST_GLIBC[1]}"
    return ""

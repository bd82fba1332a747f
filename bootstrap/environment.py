"""The private environment in .hubweir/: what is made, from what, and when it is made again.

    .hubweir/<python tag>/        a virtual environment for each Python that called ./run; state.json says what is in it
    .hubweir/<python tag>/bytecode/  what tests compiled, where Python is told to write none beside the sources
    .hubweir/uv/                  the installer, when the machine has none
    .hubweir/data/, log/          downloads, and the output of each step

An environment is kept as long as the Python is the same. Each requirements file is installed again when its text
changes, the kernels are compiled again when a source of theirs changes. state.json is written after each finished step,
so an interrupted ./run goes on where it was. The checkout itself is on the environment's path: nothing to reinstall
after an edit.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from bootstrap import compiler, pip_settings
from bootstrap.steps import StepFailed, say, step

Command = Sequence[str | Path]

# What each verb needs installed. test.txt holds everything of demo.txt, in the same versions.
DEMO, TEST = "demo.txt", "test.txt"
# Settings about where a person's own packages go have no say about ours.
NOT_OURS = ("PYTHONPATH", "PYTHONHOME", "UV_SYSTEM_PYTHON", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX")
INSTALLERS = {
    "UV_PYTHON_DOWNLOADS": "never",  # the Python that called ./run is the one that is used
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_USER": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
}
KERNEL_SOURCES = ("setup.py", "src/hubweir/kernels/**/*.pyx", "src/hubweir/kernels/**/*.pxd")
COMPILED = "compiled"
SEE_LOG = "see .hubweir/log"
NO_PIP = """this Python ({python}) has neither pip nor ensurepip, so nothing can be installed with it.
Install one of them and call ./run again:
  Debian, Ubuntu   apt install python3-venv
  Fedora, RHEL     dnf install python3-pip
  Alpine           apk add py3-pip
  any system       uv, on the PATH"""


class NotReady(Exception):
    """The environment cannot be made; the text says what the person has to do."""


class Environment:
    """The environment of one checkout and one Python."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / ".hubweir"
        self.folder = self.home / str(sys.implementation.cache_tag)
        self.binaries = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.binaries / ("python.exe" if os.name == "nt" else "python")
        self.settings = pip_settings.read(os.environ)
        self.environ = {name: value for name, value in os.environ.items() if name not in NOT_OURS} | INSTALLERS
        self.state = self.read_state()
        self.uv_missing = False  # tried and could not be had

    # What is there

    def read_state(self) -> dict[str, str]:
        """Return what state.json says, or nothing when it is missing, broken or of another Python or place."""
        try:
            state = json.loads((self.folder / "state.json").read_text())
        except (OSError, ValueError):
            return {}
        same = isinstance(state, dict) and state.get("python") == self.identity() and self.python.exists()
        return state if same else {}

    def identity(self) -> str:
        """Return what an environment cannot outlive: its Python, and its own place (scripts name it)."""
        return f"{sys.version} at {sys.base_prefix} for {self.root}"

    def has(self, requirements: str) -> bool:
        """Is this requirements file installed as it stands now?"""
        alternatives = (requirements, TEST) if requirements == DEMO else (requirements,)
        return any(self.state.get(name) == self.digest(f"requirements/{name}") for name in alternatives)

    def kernels_current(self) -> bool:
        """Were the kernels built, or tried, from these sources with the compiler that is here now?"""
        built = self.state.get("kernels") != COMPILED or any(self.extension_modules())
        return built and self.state.get("kernel sources") == self.kernel_key()

    def kernel_key(self) -> str:
        return f"{self.digest(*KERNEL_SOURCES)} {compiler.missing() or 'can compile'}"

    def extension_modules(self) -> list[Path]:
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        return list((self.root / "src" / "hubweir" / "kernels").glob(f"**/_*{suffix}"))

    def digest(self, *patterns: str) -> str:
        found = sorted(path for pattern in patterns for path in self.root.glob(pattern))
        return hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()

    # Making it so

    def ensure(self, requirements: str) -> None:
        """Make the environment ready for requirements (DEMO or TEST). NotReady when that cannot be."""
        if self.has(requirements) and self.kernels_current():
            return
        self.home.mkdir(exist_ok=True)
        with alone(self.home / "lock"):
            self.state = self.read_state()  # another ./run may have done it while we waited
            try:
                if not self.state:
                    self.make()
                if not self.has(requirements):
                    self.install(requirements)
                if requirements == TEST:
                    self.install_proton()
                if not self.kernels_current():
                    self.build_kernels()
            except StepFailed as error:
                raise NotReady(str(error)) from None

    def remember(self, **facts: str) -> None:
        self.state |= {name.replace("_", " "): fact for name, fact in facts.items()}
        self.write_state()

    def write_state(self) -> None:
        written = self.folder / "state.json.new"
        written.write_text(json.dumps(self.state, indent=2))
        written.replace(self.folder / "state.json")

    def make(self) -> None:
        """Make an empty virtual environment that sees the checkout's src/."""
        shutil.rmtree(self.folder, ignore_errors=True)
        uv = self.uv()
        if uv is not None:
            command: Command = [uv, "venv", "--python", sys.executable, self.folder]
        elif importlib.util.find_spec("ensurepip") is not None:
            command = [sys.executable, "-m", "venv", self.folder]
        else:
            command = [sys.executable, "-m", "venv", "--without-pip", self.folder]  # pip of this Python fills it
        self.step("making an environment", command)
        libraries = next(self.folder.glob("lib/*/site-packages"), self.folder / "Lib" / "site-packages")
        (libraries / "hubweir.pth").write_text(f"{self.root / 'src'}\n")
        self.state = {"python": self.identity()}
        self.write_state()

    def uv(self) -> str | None:
        """Return a uv to call, fetched with pip when the machine has none; None when it cannot be had."""
        own = self.home / "uv" / "bin" / ("uv.exe" if os.name == "nt" else "uv")
        if found := shutil.which("uv") or (own.exists() and str(own)):
            return found
        if self.uv_missing:
            return None
        has_pip = importlib.util.find_spec("pip") is not None
        if not has_pip and importlib.util.find_spec("ensurepip") is None:
            raise NotReady(NO_PIP.format(python=sys.executable))
        try:
            python: str = sys.executable
            if not has_pip:
                self.step("making a place for uv", [python, "-m", "venv", self.home / "pip"])
                python = next(str(p) for p in self.home.glob("pip/*/python*") if p.stem == "python")
            pins = self.root / "requirements" / "uv.txt"
            fetch: Command = [python, "-m", "pip", "install", "--target", self.home / "uv", "--only-binary", ":all:"]
            self.step("fetching uv, the installer", [*fetch, "--require-hashes", "-r", pins])
        except StepFailed as error:
            say(f"{error}\nhubweir: going on with pip instead of uv")
        self.uv_missing = not own.exists()
        return None if self.uv_missing else str(own)

    def install(self, requirements: str, *options: str) -> None:
        """Install one requirements file, with uv, or else with pip. Every file is checked against its hash."""
        pins = self.root / "requirements" / requirements
        count = sum("==" in line for line in pins.read_text().splitlines())
        title = f"installing {count} package{'s' if count > 1 else ''} ({requirements})"
        arguments: Command = [*options, "--require-hashes", "-r", pins]
        uv = self.uv()
        done = False
        if uv is not None:
            extra = pip_settings.uv_options(self.settings)
            try:
                self.step(title, [uv, "pip", "install", "--python", self.python, *extra, *arguments])
                done = True
            except StepFailed as error:
                say(f"{error}\nhubweir: trying again with pip")
        if not done:
            self.step(title, [*self.pip(), "install", *arguments])
        self.state[requirements] = self.digest(f"requirements/{requirements}")
        self.write_state()

    def pip(self) -> Command:
        """Return how to call pip on the environment: its own, or else this Python's."""
        if next(self.folder.glob("[lL]ib/**/site-packages/pip/__init__.py"), None) is not None:
            return [self.python, "-m", "pip"]
        if importlib.util.find_spec("pip") is not None:
            return [sys.executable, "-m", "pip", "--python", self.python]
        if importlib.util.find_spec("ensurepip") is not None:
            self.step("adding pip", [self.python, "-m", "ensurepip"])
            return [self.python, "-m", "pip"]
        raise NotReady(NO_PIP.format(python=sys.executable))

    def install_proton(self) -> None:
        """Install Qpid Proton, the second AMQP implementation of the conformance tests, where it can be compiled."""
        tried = self.digest("requirements/proton.txt")
        if self.state.get("proton tried") == f"{tried} {compiler.missing()}":
            return
        if missing := compiler.missing():
            say(f"no {missing}: Qpid Proton cannot be built, so its conformance tests are skipped")
        else:
            try:
                self.install("proton.txt", "--no-build-isolation", "--no-deps")
            except (StepFailed, NotReady) as error:
                say(f"{error}\nhubweir: without Qpid Proton its conformance tests are skipped")
        self.remember(proton_tried=f"{tried} {compiler.missing()}")

    def build_kernels(self) -> None:
        """Compile the kernels into src/, or leave the plain-Python twins alone on the path and remember why."""
        key = self.kernel_key()
        sources = sorted(path.stem for path in (self.root / "src" / "hubweir" / "kernels").glob("**/*.pyx"))
        outcome = "not compiled: their sources are not here"
        for path in self.extension_modules():  # compiled from other sources: worse than none
            path.unlink(missing_ok=True)
        if missing := compiler.missing():
            outcome = f"not compiled: no {missing}"
        elif sources:
            place = self.folder / "build"
            shutil.rmtree(place, ignore_errors=True)  # or setuptools would copy an old module in a failed one's place
            how: Command = ["--parallel", str(os.cpu_count() or 1), "--build-lib", place, "--build-temp", place]
            command: Command = [self.python, "setup.py", "build_ext", "--inplace", "--force", *how]
            try:
                self.step("compiling the kernels", command)
                built = sorted(path.name.split(".")[0] for path in self.extension_modules())
                outcome = COMPILED if built == sources else f"not compiled: the compiler failed, {SEE_LOG}"
            except StepFailed as error:
                say(str(error))
                outcome = f"not compiled: their sources have a mistake, {SEE_LOG}"
        self.remember(kernels=outcome, kernel_sources=key)

    def step(self, title: str, command: Command) -> None:
        name = title.split("(")[0].strip().replace(" ", "-").replace(",", "")
        environ = self.environ | pip_settings.for_uv(self.settings, self.environ) | compiler.variable()
        step(title, command, log=self.home / "log" / f"{name}.txt", environ=environ, cwd=self.root)


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold lock while the environment changes, so that two calls of ./run do not build it at once."""
    try:
        import fcntl
    except ImportError:  # Windows: two first calls at once are the caller's to avoid
        yield
        return
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another ./run is preparing the environment; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield

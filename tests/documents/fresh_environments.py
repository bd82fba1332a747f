"""Environments as a reader has them: hubweir, what a page tells to install, and nothing of the tests.

An installation is the wheel of this checkout with its dependencies. A checkout is what `./run python` has. Into either
go the packages that a page names, by the installer that the page names for it. All versions are those of the pins.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from bootstrap import pip_settings
from bootstrap.environment import DEMO, Environment
from bootstrap.steps import step
from tests.documents.named_packages import Way

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)


class FreshEnvironments:
    """folder: where they are made, each once. uv: of env, which is the checkout's own and stays as it is.

    pins: the file of all pins, one a line.
    """

    def __init__(self, env: Environment, uv: str, folder: Path) -> None:
        self._env = env
        self._uv = uv
        self._folder = folder
        self._made: dict[tuple[Way, frozenset[str]], Path] = {}
        self._wheel: Path | None = None
        self.pins = folder / "pins.txt"
        # Without their hashes: with one hash in it an installer would want a hash of all, of the new wheel, too.
        pins = {pin.strip() for path in (ROOT / "requirements").glob("*.txt") for pin in PIN.findall(path.read_text())}
        self.pins.write_text("\n".join(sorted(pins)))

    def python(self, way: Way, names: Collection[str]) -> Path:
        """The interpreter of an environment of this way with these packages."""
        key = way, frozenset(names)
        if key not in self._made:
            self._made[key] = self._make(way, sorted(names))
        return self._made[key]

    def _make(self, way: Way, names: Sequence[str]) -> Path:
        place = self._folder / f"{way}-{len(self._made)}"
        self._step([self._uv, "venv", "--python", sys.executable, place])
        python = place / "bin" / "python"
        if way is Way.CHECKOUT:
            self._install(python, "--require-hashes", "-r", ROOT / "requirements" / DEMO)
            [libraries] = place.glob("lib/*/site-packages")
            (libraries / "hubweir.pth").write_text(f"{ROOT / 'src'}\n")
            if names:
                self._step([python, "-m", "pip", "install", *names])
        else:
            self._install(python, "--constraint", self.pins, self._built())
            if names:
                self._install(python, "--constraint", self.pins, *names)
        return python

    def _built(self) -> Path:
        """The wheel, of a copy of the sources. The twins in plain Python do: what is proven is what else is there."""
        if self._wheel is None:
            source = self._folder / "source"
            left_out = shutil.ignore_patterns("tests", "__pycache__", "*.so", "*.egg-info")
            shutil.copytree(ROOT / "src", source / "src", ignore=left_out)
            for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
                shutil.copy(ROOT / name, source)
            build = [self._uv, "build", "--wheel", "--no-build-isolation", "--python", sys.executable]
            self._step([*build, "--out-dir", self._folder / "dist", source], HUBWEIR_KERNELS="none")
            [self._wheel] = (self._folder / "dist").glob("*.whl")
        return self._wheel

    def _install(self, python: Path, *arguments: str | Path) -> None:
        options = pip_settings.uv_options(self._env.settings)
        self._step([self._uv, "pip", "install", "--python", python, *options, *arguments])

    def _step(self, command: Sequence[str | Path], **variables: str) -> None:
        environ = self._env.environ | pip_settings.for_uv(self._env.settings, self._env.environ) | variables
        environ |= {"PIP_CONSTRAINT": os.fspath(self.pins)}
        log = self._folder / "log.txt"
        step(" ".join(map(str, command[1:4])), command, log=log, environ=environ, cwd=self._folder)

"""Builds the compiled kernels when it can; the package works without them.

Everything else about the package stands in pyproject.toml. Each kernel has a twin in plain Python
(hubweir/kernels/twins.py), so every missing thing here costs speed only: no Cython or no kernel source means
no extension modules, and a compiler that is missing or fails skips the module (optional). Mistakes in the
.pyx files themselves are not forgiven.

HUBWEIR_KERNELS says otherwise: `required` ends a build that would have no kernels, `none` makes a wheel without them,
for any platform. ./run release sets it.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
# No -march: a wheel must run on other machines than its builder's. Faster instructions are chosen at run time.
OPTIMISE = ["/O2"] if sys.platform == "win32" else ["-O3"]


def kernel_modules() -> list[Extension]:
    """Return the extension modules whose source is here, translated to C under build/."""
    sources = sorted(path.relative_to(ROOT) for path in ROOT.glob("src/hubweir/kernels/*/_*.pyx"))
    asked = os.environ.get("HUBWEIR_KERNELS", "")
    if not sources or asked == "none":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if asked == "required":
            raise
        print("hubweir: Cython is not installed; the kernels run as plain Python", file=sys.stderr)
        return []
    modules: list[Extension] = cythonize(
        [
            Extension(f"hubweir.kernels.{path.parent.name}.{path.stem}", [path.as_posix()], extra_compile_args=OPTIMISE)
            for path in sources
        ],
        build_dir="build",
        include_path=["src"],
        compiler_directives={"language_level": "3"},
    )
    for module in modules:
        module.optional = asked != "required"  # cythonize makes new Extension objects and forgets this argument
    return modules


setup(ext_modules=kernel_modules())

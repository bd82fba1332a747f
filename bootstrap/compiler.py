"""What this machine has to compile a C extension with, and what it lacks."""

import os
import shutil
import sysconfig
from pathlib import Path


def found() -> str:
    """Return the C compiler to call: the one Python was built with, or any other that is here, or an empty text."""
    wanted = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    return next((name for name in (wanted, "cc", "gcc", "clang") if shutil.which(name)), "")


def variable() -> dict[str, str]:
    """Return CC for setuptools when the compiler that it would call is not here but another one is."""
    here = found()
    own = (sysconfig.get_config_var("CC") or "").split()[:1]
    return {"CC": here} if here and [here] != own and "CC" not in os.environ else {}


def missing() -> str:
    """Return what a C extension lacks on this machine, or an empty text."""
    if os.name == "nt":
        return ""  # setuptools finds the compiler itself, or fails and the twins serve
    if not found():
        return "C compiler"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python.h (Debian, Ubuntu: apt install python3-dev)"
    return ""

"""What makes Spark's Python processes start in half the time or less: they compile nothing that was compiled before.

Spark puts its zip of PySpark before the installed one on their path. Python keeps no bytecode of a zip, so each process
compiles PySpark anew, and each stream starts one. Where PYTHONDONTWRITEBYTECODE is set, it also compiles whatever else
was not compiled before that was set.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark


def quick_workers(folder: Path, bytecode: Path) -> dict[str, str]:
    """Variables for the JVM, which its workers inherit. folder: for a Spark home, which is the installed PySpark's, all
    but the folder that has the zip. bytecode: where Python keeps it when it may not stand beside the sources.
    """
    home = folder / "home"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "python":
            (home / path.name).symlink_to(path)
    if not sys.dont_write_bytecode:
        return {"SPARK_HOME": str(home)}
    # An empty text is as good as no variable.
    return {"SPARK_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(bytecode)}

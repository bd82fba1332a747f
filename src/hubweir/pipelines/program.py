"""A pipeline's program by its name: a module with `start`, or `module:function`. Job in, a stream to start out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter

Program = Callable[[Job], "DataStreamWriter"]


def load_program(name: str) -> Program:
    """IllegalDescription when there is no such function. Modules in the working directory are found, too."""
    module_name, _, function = name.partition(":")
    function = function or "start"
    if "" not in sys.path and not module_name.startswith("hubweir."):
        sys.path.insert(0, "")
    try:
        program = getattr(importlib.import_module(module_name), function, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise IllegalDescription(f"pipeline {name}: there is no module {module_name} here") from None
    if not callable(program):
        raise IllegalDescription(f"pipeline {name}: module {module_name} has no function {function!r}")
    found: Program = program
    return found

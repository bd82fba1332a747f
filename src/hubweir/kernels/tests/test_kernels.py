"""The front page picks the twins that the environment asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import hubweir
from hubweir.kernels import twins

SOURCE = str(Path(hubweir.__file__).parent.parent)


def which_with(wanted: str | None) -> str:
    """What a new process says that it runs."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    environment.pop("HUBWEIR_KERNELS", None)
    if wanted is not None:
        environment["HUBWEIR_KERNELS"] = wanted
    code = "from hubweir import kernels; print(kernels.which(), kernels.ingest.__module__, kernels.deliver.__module__)"
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_the_environment_can_ask_for_the_twins_in_plain_python() -> None:
    assert which_with("pure").split() == ["pure", "hubweir.kernels.messages.ingest", "hubweir.kernels.frames.deliver"]


def test_the_compiled_kernels_are_taken_where_they_were_built(compiled: SimpleNamespace) -> None:
    assert which_with(None).split() == [
        "compiled",
        "hubweir.kernels.messages._messages",
        "hubweir.kernels.frames._frames",
    ]
    assert which_with("compiled").split()[0] == "compiled"


def test_both_twins_have_every_kernel_of_the_contract(compiled: SimpleNamespace) -> None:
    from hubweir import kernels
    from hubweir.kernels import columns_contract, contract, queue_contract

    said = f"{contract.__doc__}{columns_contract.__doc__}{queue_contract.__doc__}"
    for name in twins.KERNELS:
        assert f"\n    {name}(" in said
        assert callable(getattr(kernels, name))
        assert callable(getattr(compiled, name))

"""Programs by name: every ready-made pipeline has one, and what is not there is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.program import load_program
from hubweir.pipelines.ready_made import READY_MADE


@pytest.mark.parametrize("name", READY_MADE)
def test_every_pipeline_has_a_program(name: str) -> None:
    pytest.importorskip("pyspark")
    assert load_program(READY_MADE[name].program).__doc__


def test_a_program_of_ones_own_is_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_pipeline_job.py").write_text("def build(job):\n    return 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert load_program("own_pipeline_job:build")(None) == 7  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module_here:build", "there is no module no_such_module_here"),
        ("hubweir.pipelines.job:build", "has no function 'build'"),
    ],
)
def test_what_is_not_there_is_named(name: str, says: str) -> None:
    with pytest.raises(IllegalDescription, match=says):
        load_program(name)

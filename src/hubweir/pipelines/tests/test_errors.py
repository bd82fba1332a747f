"""The errors of pipelines are hubweir's, so the command line shows their one line and no traceback."""

from __future__ import annotations

import pytest

from hubweir.errors import HubweirError
from hubweir.pipelines import errors


@pytest.mark.parametrize("name", ["CheckpointInUse", "IllegalDescription", "PipelineFailed"])
def test_each_is_told_apart_and_caught_with_the_others(name: str) -> None:
    error = getattr(errors, name)("what, and the way out")
    assert isinstance(error, HubweirError) and str(error) == "what, and the way out"
    others = [other for other in vars(errors).values() if isinstance(other, type) and other is not HubweirError]
    assert len(others) == 3 and sum(isinstance(error, other) for other in others) == 1

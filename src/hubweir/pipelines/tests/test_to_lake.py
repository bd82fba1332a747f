"""A column of the schema may not be one that the table has already, in any case."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.to_lake import check_columns


def test_a_column_that_would_hide_another_is_named() -> None:
    check_columns(["tea", "coffee"], ["body", "hour"])
    with pytest.raises(IllegalDescription, match="a column Hour itself; allowed: others than body, hour"):
        check_columns(["tea", "Hour"], ["body", "hour"])

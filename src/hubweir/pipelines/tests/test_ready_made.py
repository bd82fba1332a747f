"""The table of pipelines is whole: names, programs, and no field twice."""

from __future__ import annotations

import importlib.util

import pytest

from hubweir.pipelines.ready_made import READY_MADE


@pytest.mark.parametrize("name", READY_MADE)
def test_an_entry_names_a_module_and_each_field_once(name: str) -> None:
    entry = READY_MADE[name]
    assert importlib.util.find_spec(entry.program) is not None
    for fields in (entry.parameters, entry.sink):
        names = [field.name for field in fields]
        assert len(set(names)) == len(names) and all(field.meaning for field in fields)
    assert entry.summary and entry.trigger_s > 0

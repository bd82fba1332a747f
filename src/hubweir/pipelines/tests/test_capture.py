"""Names of the files of a pipeline: what is not given comes from the host, and what cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from hubweir.errors import ServiceError
from hubweir.pipelines.capture import file_names, first_label
from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job

TEXT = "Endpoint=sb://orders.example.net;SharedAccessKeyName=r;SharedAccessKey=k"


def job(path: str, **parameters: Any) -> Job:
    raw = {
        "pipeline": "capture",
        "source": {"connectionString": TEXT, "eventHub": "o"},
        "parameters": parameters,
        "sink": {"path": path},
    }
    return Job(None, describe(raw, "test"))  # type: ignore[arg-type]


def test_the_namespace_is_the_hosts_first_label_or_what_is_said(tmp_path: Path) -> None:
    found = file_names(job(str(tmp_path)))
    assert (found.namespace, found.hub, found.folder, found.size_limit_bytes) == (
        "orders", "o", str(tmp_path), 314_572_800,
    )  # fmt: skip
    assert file_names(job(str(tmp_path), namespace="ns")).namespace == "ns"
    assert (first_label("localhost"), first_label("127.0.0.1"), first_label("::1")) == ("localhost", "127-0-0-1", "--1")


def test_names_that_could_meet_and_places_that_are_no_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="each of the nine tokens once"):
        file_names(job(str(tmp_path), archiveNameFormat="{PartitionId}/{Year}"))
    with pytest.raises(IllegalDescription, match="az://films is no folder"):
        file_names(job("az://films"))

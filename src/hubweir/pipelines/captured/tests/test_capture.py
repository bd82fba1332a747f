"""Names of the files of a pipeline: what is not given comes from the host, and what cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from hubweir.broker.capture.blob_upload import BadStorage
from hubweir.errors import ServiceError
from hubweir.pipelines.captured.capture import file_names, first_label
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
    assert (found.namespace, found.hub, found.place, found.size_limit_bytes) == (
        "orders", "o", str(tmp_path), 314_572_800,
    )  # fmt: skip
    assert file_names(job(str(tmp_path), namespace="ns")).namespace == "ns"
    assert (first_label("localhost"), first_label("127.0.0.1"), first_label("::1")) == ("localhost", "127-0-0-1", "--1")


def test_names_that_could_meet_and_places_that_are_none_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUBWEIR_CAPTURE_STORAGE", raising=False)
    with pytest.raises(ServiceError, match="each of the nine tokens once"):
        file_names(job(str(tmp_path), archiveNameFormat="{PartitionId}/{Year}"))
    with pytest.raises(IllegalDescription, match="sink.storage is missing: .*of az://films, or give it by HUBWEIR_CAP"):
        file_names(job("az://films"))
    with pytest.raises(IllegalDescription, match="sink.path is 's3://films'; allowed: a folder, or az://container/pre"):
        file_names(job("s3://films"))
    monkeypatch.setenv("HUBWEIR_CAPTURE_STORAGE", "AccountName=a")
    with pytest.raises(BadStorage, match="no connection string of a storage account"):
        file_names(job("az://films/x"))

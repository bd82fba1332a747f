"""Addresses of blobs and the account they are in; the real account is in tests/spark/test_pipelines_blobs.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.broker.capture.blob_upload import BadStorage
from hubweir.pipelines.captured.blob_storage import (
    BlobPrefix,
    check_address,
    destination_of,
    is_blobs,
    storage_of,
    store_settings,
)
from hubweir.pipelines.captured.local_attempts import LocalAttempts
from hubweir.pipelines.errors import IllegalDescription

STORAGE = "AccountName=films;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/films;"


def test_an_address_is_a_container_and_a_prefix() -> None:
    for address in ("az://films", "az://films/", "az://films/a/b"):
        check_address(address, "sink.path")
        assert is_blobs(address)
    for address in ("az://", "az:films", "s3://films", "az://films?x=1", "https://films.blob/x"):
        with pytest.raises(IllegalDescription, match="^sink.path is .*allowed: a folder, or az://container/prefix"):
            check_address(address, "sink.path")


def test_a_place_is_a_folder_or_a_prefix(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    assert isinstance(destination_of(str(tmp_path), ""), LocalAttempts)
    prefixes = [destination_of(address, STORAGE) for address in ("az://films", "az://films/a/b/")]
    assert [one._prefix for one in prefixes if isinstance(one, BlobPrefix)] == ["", "a/b/"]
    with pytest.raises(BadStorage):
        destination_of("az://films", "")


def test_the_description_stands_above_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBWEIR_CAPTURE_STORAGE", "of the environment")
    assert (storage_of("own"), storage_of("")) == ("own", "of the environment")
    monkeypatch.delenv("HUBWEIR_CAPTURE_STORAGE")
    assert storage_of("") == ""


def test_the_reader_is_given_the_same_account() -> None:
    assert store_settings(STORAGE) == {
        "account_name": "films", "account_key": "c2VjcmV0", "endpoint": "http://127.0.0.1:1/films",
    }  # fmt: skip
    signed = store_settings("BlobEndpoint=https://films.blob.core.windows.net;SharedAccessSignature=sv=1&sig=x")
    assert (signed["account_name"], signed["sas_key"]) == ("films", "sv=1&sig=x")
    assert store_settings("") == {}

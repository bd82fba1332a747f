"""Connection strings of storage accounts; what goes over the wire is tested against Azurite in tests/capture."""

from __future__ import annotations

import pytest

from hubweir.broker.capture.blob_upload import BadStorage, parse_storage


def test_the_portals_form_names_account_and_key() -> None:
    text = "DefaultEndpointsProtocol=https;AccountName=films;AccountKey=a2V5==;EndpointSuffix=core.chinacloudapi.cn"
    account = parse_storage(text)
    assert (account.name, account.key) == ("films", "a2V5==")
    assert account.endpoint == "https://films.blob.core.chinacloudapi.cn"
    assert "a2V5" not in repr(account)


def test_an_endpoint_of_its_own_is_used_as_it_is() -> None:
    account = parse_storage("AccountName=dev;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:10000/dev/;")
    assert (account.name, account.endpoint) == ("dev", "http://127.0.0.1:10000/dev")


def test_a_signature_serves_without_a_key() -> None:
    account = parse_storage("BlobEndpoint=https://films.blob.core.windows.net/;SharedAccessSignature=?sv=1&sig=abc")
    assert (account.name, account.key, account.signature) == ("films", "", "sv=1&sig=abc")


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "AccountName=films",
        "AccountKey=a2V5",
        "SharedAccessSignature=sig=a2V5",
        "AccountName=f;AccountKey=k;BlobEndpoint=ftp://f",
        "BlobEndpoint=films;SharedAccessSignature=sig=a2V5",
        "BlobEndpoint=https://films.blob.core.windows.net",
    ],
)
def test_what_is_no_connection_string_is_refused_without_its_key(text: str) -> None:
    with pytest.raises(BadStorage) as refused:
        parse_storage(text)
    assert "a2V5" not in str(refused.value)

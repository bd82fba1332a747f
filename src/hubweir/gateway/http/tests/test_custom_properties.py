"""Which headers become properties of an event, and as what."""

import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.custom_properties import (
    PROPERTIES_BYTES,
    PROPERTY_BYTES,
    PROPERTY_COUNT,
    check_properties,
    custom_properties,
    partition_key,
)


def test_headers_of_http_and_of_proxies_are_no_properties() -> None:
    of_http = (
        "Host", "Content-Length", "Transfer-Encoding", "User-Agent", "Authorization", "Content-Type",
        "BrokerProperties",
        "Accept", "Accept-Encoding", "Connection", "Expect", "X-Forwarded-For", "X-Original-URL", "Via", "Cookie",
        "x-ms-retrypolicy", "X-HTTP-Method-Override", "Sec-Fetch-Mode", "Proxy-Authorization",
    )  # fmt: skip
    assert custom_properties([(name.encode(), b"x") for name in of_http]) == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"Strong Winds", "Strong Winds"),
        (b'"Strong \\"Winds\\""', 'Strong "Winds"'),
        (b"7", "7"),
        (b"true", "true"),
        (b"", ""),
        (b'"', '"'),
        (b'"not json', '"not json'),
        (b'"a" and "b"', '"a" and "b"'),
        (b'"\\ud800"', '"\\ud800"'),
        ("\u00fc".encode(), "\u00fc"),
    ],
)
def test_a_value_in_quotation_marks_is_json_and_every_other_is_text(value: bytes, expected: str) -> None:
    assert custom_properties([(b"WindAlert", value)]) == {"WindAlert": expected}


@pytest.mark.parametrize("fields", [[(b"a", b"\xff")], [(b"a", b"1"), (b"A", b"2")]])
def test_what_could_be_two_things_is_refused(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(ServiceError) as refusal:
        custom_properties(fields)
    assert refusal.value.condition is ARGUMENT_ERROR


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (None, None), (b"{}", None), (b'{"PartitionKey": "a"}', "a"), (b'{"PartitionKey": ""}', None),
        (b'{"PartitionKey": null}', None), (b"null", None), (b'{"MessageId": "1", "TimeToLive": 10}', None),
    ],
)  # fmt: skip
def test_the_partition_key_is_found(header: bytes | None, key: str | None) -> None:
    assert partition_key(header) == key


@pytest.mark.parametrize(
    "header", [b"", b"[]", b'"a"', b'{"PartitionKey": 1}', b'{"PartitionKey":"a","PartitionKey":"b"}']
)
def test_broker_properties_that_are_none_are_refused(header: bytes) -> None:
    with pytest.raises(ServiceError, match="^BrokerProperties is not what it must be"):
        partition_key(header)


def test_properties_have_limits() -> None:
    check_properties({"a": "x" * (PROPERTY_BYTES - 1)})
    check_properties({str(number): 1 for number in range(PROPERTY_COUNT)})
    check_properties({"a": "x" * (PROPERTY_BYTES - 1), "b": "x" * (PROPERTIES_BYTES - PROPERTY_BYTES - 1)})
    for too_much in (
        {"a": "x" * PROPERTY_BYTES},
        {str(number): 1 for number in range(PROPERTY_COUNT + 1)},
        {"a": "x" * (PROPERTY_BYTES - 1), "b": "x" * (PROPERTY_BYTES - 1), "c": None},
    ):
        with pytest.raises(ServiceError):
            check_properties(too_much)

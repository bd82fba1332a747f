import asyncio
from typing import Any

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.http.exchange import Request
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.portal.form import FIELD_COUNT, FORM_BYTES, Form, read_form, read_query

TOO_MANY = b"&".join(b"f%d=" % number for number in range(FIELD_COUNT + 1))
TYPE = b"application/x-www-form-urlencoded"


def request(body: bytes = b"", *, query: str = "", media_type: bytes = TYPE) -> Request:
    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = {b"content-type": media_type, b"content-length": str(len(body)).encode()}
    return Request("POST", ("portal",), query, headers, [], "http://localhost", receive)


def read(body: bytes, **named: Any) -> Form:
    return asyncio.run(read_form(request(body, **named), ProcessBudget(1_000_000)))


def test_fields_come_decoded_with_those_that_are_empty() -> None:
    assert read(b"a=1+2&b=%C3%A9&c=") == {"a": "1 2", "b": "é", "c": ""}
    assert read_query(request(query="page=2&search=a%2Fb")) == {"page": "2", "search": "a/b"}
    assert read(b"", media_type=TYPE + b"; charset=UTF-8") == {}


@pytest.mark.parametrize("body", [b"a=1&a=2", b"a=%FF", "a=é".encode(), TOO_MANY])
def test_what_could_be_read_in_two_ways_is_refused(body: bytes) -> None:
    with pytest.raises(ServiceError, match="The form cannot be read"):
        read(body)


def test_another_type_and_a_form_that_is_too_large_are_refused() -> None:
    with pytest.raises(HttpRefusal) as refused:
        read(b"{}", media_type=b"application/json")
    assert refused.value.status == 415
    with pytest.raises(HttpRefusal) as refused:
        read(b"a=" + b"1" * FORM_BYTES)
    assert refused.value.status == 413

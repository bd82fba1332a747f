import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.body_json import body_json


def test_what_is_read_strictly_is_the_value() -> None:
    assert body_json(b'[{"Body": "x"}]', "The batch") == [{"Body": "x"}]


@pytest.mark.parametrize("data", [b"", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100])
def test_what_is_wrong_is_told_as_a_refusal_that_names_the_part(data: bytes) -> None:
    with pytest.raises(ServiceError) as refusal:
        body_json(data, "The batch")
    assert refusal.value.condition is ARGUMENT_ERROR
    assert refusal.value.text.startswith("The batch is not what it must be: ")

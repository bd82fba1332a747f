"""Connection strings as people paste them."""

import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret

EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
    "UseDevelopmentEmulator=true;"
)


def test_the_emulator_s_string_is_read() -> None:
    parsed = ConnectionString.parse(EMULATOR)
    assert (parsed.host, parsed.port, parsed.tcp_port, parsed.emulator) == ("localhost", None, 5672, True)
    assert parsed.key_name == "RootManageSharedAccessKey"
    assert parsed.key is not None and parsed.key.reveal() == "SAS_KEY_VALUE"
    assert parsed.entity_path is None


def test_a_string_with_a_port_an_entity_and_a_key_with_equals_signs_is_read() -> None:
    parsed = ConnectionString.parse(
        " endpoint = sb://127.0.0.1:5699/ ; SHAREDACCESSKEYNAME=r;SharedAccessKey=abc==;EntityPath=Hub/x "
    )
    assert (parsed.host, parsed.port, parsed.tcp_port) == ("127.0.0.1", 5699, 5699)
    assert parsed.key is not None and parsed.key.reveal() == "abc=="
    assert parsed.entity_path == "Hub/x"
    assert ConnectionString.parse("Endpoint=sb://[::1]:7").port == 7
    assert ConnectionString.parse("Endpoint=sb://[::1]").tcp_port == 5671


def test_a_ready_signature_is_kept_whole() -> None:
    signature = "SharedAccessSignature sr=sb%3A%2F%2Fh&sig=x%3D&se=1&skn=r"
    parsed = ConnectionString.parse(f"Endpoint=sb://h;SharedAccessSignature={signature}")
    assert parsed.signature == signature
    assert ConnectionString.parse(parsed.format()).signature == signature


def test_what_was_formatted_reads_back_the_same() -> None:
    written = ConnectionString("h", 5672, "rule", Secret("k=="), None, "hub", True).format()
    assert written == (
        "Endpoint=sb://h:5672;SharedAccessKeyName=rule;SharedAccessKey=k==;EntityPath=hub;UseDevelopmentEmulator=true"
    )
    assert ConnectionString.parse(written).format() == written


def test_repr_shows_no_secret() -> None:
    assert "SAS_KEY_VALUE" not in repr(ConnectionString.parse(EMULATOR))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SharedAccessKeyName=a;SharedAccessKey=secret",
        "Endpoint=localhost",
        "Endpoint=sb://",
        "Endpoint=sb://h/path",
        "Endpoint=sb://h:0",
        "Endpoint=sb://h:65536",
        "Endpoint=sb://h:x",
        "Endpoint=sb://h;SharedAccessKeyName=a",
        "Endpoint=sb://h;SharedAccessKey=secret",
        "Endpoint=sb://h;secret",
        "Endpoint=sb://h;EntityPath=a;entitypath=b",
        "Endpoint=sb://h;SharedAccessKeyName=a;SharedAccessKey=secret;SharedAccessSignature=secret",
    ],
)
def test_what_is_no_connection_string_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        ConnectionString.parse(text)
    assert refused.value.condition is ARGUMENT_ERROR
    assert "secret" not in refused.value.text

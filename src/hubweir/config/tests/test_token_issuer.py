from pathlib import Path

import pytest

from hubweir.config.settings import BadSetting, Settings
from hubweir.config.token_issuer import token_issuer
from hubweir.testing.token_issuer import ISSUER, TestIssuer


def test_no_issuer_is_set_by_default() -> None:
    assert token_issuer(Settings()) is None


def test_keys_are_read_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.pem"
    path.write_bytes(TestIssuer().pem())
    issuer = token_issuer(Settings(jwt_issuer=ISSUER, jwt_keys_file=str(path)))
    assert issuer is not None
    found = issuer.current
    assert (found.issuer, found.audience, len(found.keys)) == (ISSUER, "https://eventhubs.azure.net", 2)


@pytest.mark.parametrize(("content", "text"), [(None, "cannot be read: No such file"), (b"x", "holds 0 public keys")])
def test_a_file_without_keys_is_refused_by_its_name(tmp_path: Path, content: bytes | None, text: str) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadSetting, match=f"jwt_keys_file .*keys.* {text}"):
        token_issuer(Settings(jwt_issuer=ISSUER, jwt_keys_file=str(path)))

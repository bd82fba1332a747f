"""Reads the settings of the issuer whose JSON Web Tokens a service takes; the public keys are in a file."""

from __future__ import annotations

from pathlib import Path

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.auth.json_web_key import FILE_LIMIT, BadKeys
from hubweir.config.settings import BadSetting, TokenSettings


def token_issuer(settings: TokenSettings) -> IssuerKeys | None:
    """None when no issuer is set. Raises BadSetting when the file cannot be read or holds no good public keys."""
    if not settings.jwt_issuer:
        return None
    try:
        return IssuerKeys(settings.jwt_issuer, settings.jwt_audience, lambda: _read(settings.jwt_keys_file))
    except OSError as error:
        raise BadSetting(f"jwt_keys_file {settings.jwt_keys_file} cannot be read: {error.strerror}") from None
    except BadKeys as error:
        raise BadSetting(f"jwt_keys_file {settings.jwt_keys_file}: {error}") from None


def _read(path: str) -> bytes:
    """The file, or so much of it that it is known to be too large."""
    with Path(path).open("rb") as file:
        return file.read(FILE_LIMIT + 1)

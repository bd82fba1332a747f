"""Whose JSON Web Tokens a service takes, by its settings; the public keys are read from their file at start."""

from __future__ import annotations

from pathlib import Path

from hubweir.auth.json_web_key import BadKeys
from hubweir.auth.json_web_token import TokenIssuer
from hubweir.config.settings import BadSetting, Settings


def token_issuer(settings: Settings) -> TokenIssuer | None:
    """None when no issuer is set. Raises BadSetting when the file cannot be read or holds no good public keys."""
    if not settings.jwt_issuer:
        return None
    try:
        keys = Path(settings.jwt_keys_file).read_bytes()
        return TokenIssuer.of_file(settings.jwt_issuer, settings.jwt_audience, keys)
    except OSError as error:
        raise BadSetting(f"jwt_keys_file {settings.jwt_keys_file} cannot be read: {error.strerror}") from None
    except BadKeys as error:
        raise BadSetting(f"jwt_keys_file {settings.jwt_keys_file}: {error}") from None

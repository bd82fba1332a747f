"""docs/shared_access_signature.md: a client certificate that is made as the page shows proves its rule."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest

from hubweir.testing.frames import sasl_start
from tests.conformance.raw_client import RawClient
from tests.documents.console_block import Step
from tests.documents.page_session import PageSession

PAGE = (Path(__file__).resolve().parents[2] / "docs/shared_access_signature.md").read_text()
OK, REFUSED = 0, 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl is here")
def test_a_client_certificate_of_the_page_proves_its_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with PageSession(tmp_path) as session:
        assert list(session.problems(PAGE.partition("\n## SASL\n")[2])) == []
        assert session.server is not None

        def outcome(*certificate: str) -> int:
            assert session.server is not None
            tls = ssl.create_default_context(cafile="hubweir-data/tls/ca.pem")
            if certificate:
                tls.load_cert_chain(*certificate)
            with RawClient.connect((session.server.host, session.server.port), tls=tls) as client:
                client.write(sasl_start("EXTERNAL", b""))
                return client.sasl_outcome()

        assert outcome("line-4.pem", "line-4-key.pem") == OK
        assert outcome() == REFUSED
        assert session.problem(Step("hubweir authorization-rule delete line-4 --yes", "")) is None
        assert outcome("line-4.pem", "line-4-key.pem") == REFUSED

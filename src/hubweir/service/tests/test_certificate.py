"""The certificate of a service: the operator's, and another one in its place while the service runs."""

import asyncio
import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.config.settings import Settings
from hubweir.drivers.development_certificate import development_certificate
from hubweir.drivers.tls import CertificateFiles, client_context
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.service import Service
from hubweir.testing.event_loops import LOOPS, run_on


@pytest.fixture(params=sorted(LOOPS))
def loop_name(request: pytest.FixtureRequest) -> Any:
    return request.param


def settings(tmp_path: Path, own: CertificateFiles) -> Settings:
    data = str(tmp_path / "data")
    return Settings(data=data, port=(0,), tls_cert=str(own.certificate), tls_key=str(own.key))


def test_the_operators_certificate_is_used_and_no_other_made(tmp_path: Path) -> None:
    files = development_certificate(tmp_path / "own", ["127.0.0.1"], datetime.datetime.now(datetime.UTC))

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, files))
        reader, writer = await asyncio.open_connection(*service.addresses[0], ssl=client_context(files.ca))
        writer.close()
        await writer.wait_closed()
        assert not (tmp_path / "data" / "tls").exists()
        await service.stop()

    run_on("asyncio", scenario())


def test_a_certificate_that_is_read_again_holds_for_new_connections_and_a_bad_one_changes_nothing(
    loop_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    first = development_certificate(tmp_path / "own", ["127.0.0.1"], now)
    second = development_certificate(tmp_path / "renewed", ["127.0.0.1"], now)

    async def certificate_is_read(service: Service, says: str) -> None:
        caplog.clear()
        service.read_certificate()
        async with asyncio.timeout(20):
            while says not in caplog.text:
                await asyncio.sleep(0.01)

    async def is_served_by(service: Service, ca: Path | None) -> bool:
        try:
            reader, writer = await asyncio.open_connection(*service.addresses[0], ssl=client_context(ca))
        except ssl.SSLCertVerificationError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, first))
        text = ConnectionString.parse(service.connection_string(plain=False))
        before = await Connection.open(text, tls=client_context(first.ca))
        second.certificate.replace(first.certificate)
        await certificate_is_read(service, "the certificate: stays as it was")  # the old key is another one's
        assert await is_served_by(service, first.ca)
        second.key.replace(first.key)
        await certificate_is_read(service, "the certificate: read from ")
        assert not await is_served_by(service, first.ca)
        assert await is_served_by(service, second.ca)
        assert (await Management(before).namespace()).name == "hubweir"  # it goes on under the certificate that it met
        await before.close()
        await service.stop()
        service.read_certificate()  # too late: nothing happens

    with caplog.at_level("INFO", "hubweir.service"):
        run_on(loop_name, scenario())

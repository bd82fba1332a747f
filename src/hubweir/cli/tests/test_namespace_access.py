from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.namespace_access import DEVELOPMENT, NamespaceAccess, takes_target
from hubweir.namespace.connection_string import ConnectionString


@click.command()
@click.option("--loud", is_flag=True)
@takes_target
def probe(target: NamespaceAccess, loud: bool) -> None:
    """Say where."""
    click.echo(f"{target.connection_string.endpoint} {loud}")


def test_without_anything_it_is_the_development_namespace() -> None:
    assert CliRunner().invoke(probe, []).output == "sb://127.0.0.1 False\n"


def test_flag_wins_over_the_environment() -> None:
    environment = {"HUBWEIR_CONNECTION_STRING": "Endpoint=sb://from-environment"}
    assert CliRunner().invoke(probe, ["--loud"], env=environment).output == "sb://from-environment True\n"
    flag = ["--connection-string", "Endpoint=sb://from-flag"]
    assert CliRunner().invoke(probe, flag, env=environment).output == "sb://from-flag False\n"


@pytest.mark.parametrize(("text", "uses_tls"), [(DEVELOPMENT, False), ("Endpoint=sb://ns.example", True)])
def test_only_a_development_connection_string_goes_without_tls(text: str, uses_tls: bool) -> None:
    assert (NamespaceAccess(ConnectionString.parse(text), None).tls() is not None) is uses_tls


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not yet")
    with pytest.raises(click.ClickException, match=f"cannot read the CA certificate {tmp_path}/ca.pem: "):
        NamespaceAccess(ConnectionString.parse("Endpoint=sb://ns.example"), tmp_path / "ca.pem").tls()

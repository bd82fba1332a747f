import json

from click.testing import CliRunner

from hubweir.cli.main import hubweir

CONNECTION_STRING = "Endpoint=sb://ns.example;SharedAccessKeyName=reader;SharedAccessKey=secret"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(hubweir, ["sas", *arguments])
    assert done.exit_code == 0, done.output
    return done.output.strip()


def test_token_made_for_a_hub_explains_itself() -> None:
    token = run("make", "orders", "--lifetime", "2h", "--connection-string", CONNECTION_STRING)
    explained = json.loads(run("explain", token, "--json"))
    assert explained["resource"] == "sb://ns.example/orders"
    assert explained["rule"] == "reader"
    assert explained["expired"] is False


def test_explanation_says_how_long_the_token_is_over() -> None:
    token = "SharedAccessSignature sr=sb%3a%2f%2fns%2fhub&sig=" + "A" * 43 + "%3d&se=1700000000&skn=root"
    assert " s ago)" in run("explain", token)


def test_secret_of_the_connection_string_is_not_in_the_token() -> None:
    assert "secret" not in run("make", "--connection-string", CONNECTION_STRING)


def test_text_that_is_no_token_is_refused() -> None:
    refused = CliRunner().invoke(hubweir, ["sas", "explain", "Bearer x"])
    assert refused.exit_code != 0
    assert "MalformedToken" in str(refused.exception)

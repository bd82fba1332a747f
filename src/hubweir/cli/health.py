"""hubweir health: is the service ready, as an exit code, for HEALTHCHECK lines of images that have no curl."""

from __future__ import annotations

import http.client
import json
import os
import sys

import click

from hubweir.config.sources import load_settings

TIMEOUT_S = 3.0
# Nobody connects to "every address": the loopback of the same kind stands for it.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_ANSWER_BYTES = 4_096


@click.command()
@click.option("--host", help="Where the service listens.  [default: as HUBWEIR_HOST says, 127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65_535), help="One of its ports.  [default: as HUBWEIR_PORT says, 5671]")
@click.option("--timeout", default=TIMEOUT_S, show_default=True, help="Seconds until no answer is unhealthy.")
def health(host: str | None, port: int | None, timeout: float) -> None:
    """Exit with 0 when the service is ready, with 1 when it is not or nobody answers.

    Settings come from where `hubweir serve` takes them, but for its flags.
    """
    settings = load_settings({}, os.environ)
    host = host or settings.host[0]
    host, port = _LOOPBACK.get(host, host), port or settings.port[0]
    text, is_healthy = _ask(host, port, timeout)
    click.echo(f"{host}:{port}: {text}")
    sys.exit(0 if is_healthy else 1)


def _ask(host: str, port: int, timeout_s: float) -> tuple[str, bool]:
    """What the service says of itself, and whether that is good."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        document = json.loads(answer.read(_ANSWER_BYTES))
        alarms = ", ".join(f"{count} {kind}" for kind, count in document.get("alarms", {}).items())
        text = f"{document['message']} Alarms: {alarms}" if alarms else str(document["message"])
        return text, answer.status == 200 and document["status"] == "healthy"
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error}", False
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the answer is no health document: something else listens there", False
    finally:
        connection.close()

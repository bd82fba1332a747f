"""Removing one blob by a signature: what a small server is asked, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from hubweir.broker.capture.blob_delete import ATTEMPTS, DeleteRefused, delete_blob

SIGNATURE = "sv=2021-08-06&sig=c2VjcmV0"


class Account(HTTPServer):
    """Answers every request with `status`, behind those of `first`."""

    status = 202
    code: str | None = "AuthorizationPermissionMismatch"
    first: tuple[int, ...] = ()

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/films"


class Answers(BaseHTTPRequestHandler):
    server: Account

    def do_DELETE(self) -> None:
        self.server.asked.append((self.path, self.headers["x-ms-version"]))
        status, *rest = (*self.server.first, self.server.status)
        self.server.first = tuple(rest[:-1])
        self.send_response(status)
        if self.server.code is not None:
            self.send_header("x-ms-error-code", self.server.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def account() -> Iterator[Account]:
    with Account() as made:
        thread = Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_the_name_is_written_as_an_address_wants_it(account: Account) -> None:
    delete_blob(account.url, "a b/ü.avro.claim", signature=SIGNATURE, timeout_s=20)
    assert account.asked == [(f"/films/a%20b/%C3%BC.avro.claim?{SIGNATURE}", "2021-08-06")]


def test_what_is_not_there_needs_no_removing(account: Account) -> None:
    account.status = 404
    delete_blob(account.url, "a", signature=SIGNATURE, timeout_s=20)


def test_an_account_that_is_busy_for_a_moment_is_asked_again(account: Account) -> None:
    account.first = (503, 500)
    delete_blob(account.url, "a", signature=SIGNATURE, timeout_s=20)
    assert len(account.asked) == ATTEMPTS == 3


@pytest.mark.parametrize(("status", "is_forbidden"), [(403, True), (401, True), (409, False), (503, False)])
def test_a_missing_right_is_told_from_other_failures(account: Account, status: int, is_forbidden: bool) -> None:
    account.status = status
    with pytest.raises(DeleteRefused, match=rf"{status} \(AuthorizationPermissionMismatch\)") as refused:
        delete_blob(account.url, "a", signature=SIGNATURE, timeout_s=20)
    assert refused.value.is_forbidden is is_forbidden
    assert len(account.asked) == (1 if is_forbidden else ATTEMPTS)


def test_an_answer_without_a_code_of_the_service_is_told_in_the_words_of_http(account: Account) -> None:
    account.status, account.code = 409, None
    with pytest.raises(DeleteRefused, match=r"409 \(Conflict\)"):
        delete_blob(account.url, "a", signature=SIGNATURE, timeout_s=20)


def test_an_account_that_is_away_is_a_failure_and_no_text_holds_the_signature(account: Account) -> None:
    account.server_close()
    for signature in (SIGNATURE, f"{SIGNATURE} x"):  # one that no address can have
        with pytest.raises(DeleteRefused) as refused:
            delete_blob(account.url, "a", signature=signature, timeout_s=20)
        assert not refused.value.is_forbidden and "c2VjcmV0" not in str(refused.value)

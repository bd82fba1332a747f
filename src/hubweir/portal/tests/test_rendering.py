"""Templates: nothing in them that the policy of contents would stop, and nothing that is not escaped."""

import re

import pytest
from jinja2 import Environment, UndefinedError

from hubweir.portal.rendering import FOLDER, POLICY, SECURITY_HEADERS, Templates

TEXTS = {path.name: path.read_text() for path in FOLDER.iterdir()}
# Styles, scripts and handlers within a page; addresses of another site; values that are taken for markup.
STOPPED = re.compile(
    r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=|javascript:|https?:(?!//</strong>)|hx-on|\|\s*safe", re.I
)


def offences(text: str) -> list[str]:
    return [found.group() for found in STOPPED.finditer(text)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_template_has_nothing_that_its_policy_stops(name: str) -> None:
    assert offences(TEXTS[name]) == []


@pytest.mark.parametrize(
    "planted",
    ['<p style="color:red">', "<style>p{}</style>", "<script>alert(1)</script>", '<a onclick="x()">',
     '<img src="https://cdn.example/x.png">', "{{ text|safe }}", '<a href="javascript:x()">', '<p hx-on:click="x()">'],
)  # fmt: skip
def test_a_planted_offence_is_found(planted: str) -> None:
    assert offences(planted)


def test_the_policy_allows_its_own_origin_and_nothing_within_pages() -> None:
    assert "unsafe" not in POLICY and "*" not in POLICY and "http" not in POLICY
    wanted = {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"}
    assert wanted <= set(POLICY.split("; "))
    assert SECURITY_HEADERS["cache-control"] == "no-store"


def test_values_are_escaped_and_a_missing_one_is_an_error() -> None:
    templates = Templates()
    evil = "<script>alert('x')</script>"
    page = templates.answer("problem_outside.html", {"problem_text": evil, "reference": '"><img src=x>'})
    assert evil.encode() not in page.body and b"<img" not in page.body and b"&lt;script&gt;" in page.body
    with pytest.raises(UndefinedError):
        templates.answer("problem_outside.html", {})


def test_all_templates_compile() -> None:
    Templates().compile_all()


def test_portals_of_one_process_compile_their_templates_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Templates().compile_all()
    monkeypatch.setattr(Environment, "compile", None)
    other = Templates()
    other.compile_all()
    assert b"gone" in other.answer("problem_outside.html", {"problem_text": "gone", "reference": "r"}).body

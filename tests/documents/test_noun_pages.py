"""The Python example of every page about a noun runs as it stands."""

from pathlib import Path

import pytest

from tests.documents.page_examples import PAGES, example, run_example


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_runs(page: Path) -> None:
    assert run_example(example(page.read_text())) == ""


@pytest.mark.parametrize(("program", "said"), [("import no_such_module", "no_such_module"), ("exit(3)", "exit code 3")])
def test_control_arm_an_example_that_ends_badly_is_found(program: str, said: str) -> None:
    assert said in run_example(program)


def test_nouns_have_examples() -> None:
    assert {page.stem for page in PAGES} >= {
        *("event_hub", "partition", "consumer_group", "namespace", "shared_access_signature", "publisher_policy"),
        *("queue", "topic", "subscription", "rule", "message_session", "dead_letters", "duplicate_detection"),
        "transaction",
    }

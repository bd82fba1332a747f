import pytest

from hubweir.portal.paths import is_own_path, path_to


def test_addresses_hold_names_with_slashes_and_leave_out_what_is_empty() -> None:
    assert path_to("") == "/portal"
    assert path_to("queues", page=2, search="") == "/portal/queues?page=2"
    assert path_to("entity", "a/b c?/Subscriptions/$x") == "/portal/entity/a/b%20c%3F/Subscriptions/$x"


@pytest.mark.parametrize("path", ["/portal", "/portal/queues?page=2", "/portal?notice=created"])
def test_pages_of_the_portal_are_its_own(path: str) -> None:
    assert is_own_path(path)


@pytest.mark.parametrize(
    "path",
    ["", "//evil.example", "https://evil.example/portal", "/portalx", "/portal\\evil", "/portal//evil.example",
     "/queues", "/portal/\nSet-Cookie: a=b", "/portal/é", "javascript:alert(1)", "/portal/../orders",
     "/portal/%2e%2E/orders", "/portal/./..", "/portal/a/.%2e/.."],
)  # fmt: skip
def test_nothing_else_is(path: str) -> None:
    assert not is_own_path(path)

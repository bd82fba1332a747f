"""Rights and how they are named."""

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.rights import Rights, check_rights, parse_rights, right_name


def test_rights_are_read_by_name_in_any_case() -> None:
    assert parse_rights(["Send"]) == Rights.SEND
    assert parse_rights(["listen", "SEND"]) == Rights.SEND | Rights.LISTEN
    assert parse_rights(["Manage", "Send", "Listen"]) == Rights.ALL


@pytest.mark.parametrize("names", [[], ["Manage"], ["Manage", "Send"], ["Admin"], ["Send", ""]])
def test_what_no_rule_may_have_is_refused(names: list[str]) -> None:
    with pytest.raises(ServiceError) as refused:
        parse_rights(names)
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE


def test_a_right_is_written_as_texts_write_it() -> None:
    assert [right_name(right) for right in Rights] == ["Send", "Listen", "Manage"]
    assert check_rights(Rights.ALL) is Rights.ALL

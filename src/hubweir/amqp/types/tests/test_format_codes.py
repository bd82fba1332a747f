"""The table of constructor bytes against the layout rule of part 1, section 1.2."""

import pytest

from hubweir.amqp.types.format_codes import BY_CODE, FORMAT_CODES, AmqpType, Category, FormatCode

# high nibble: layout and width, as the standard draws them
LAYOUT = {
    0x4: (Category.FIXED, 0),
    0x5: (Category.FIXED, 1),
    0x6: (Category.FIXED, 2),
    0x7: (Category.FIXED, 4),
    0x8: (Category.FIXED, 8),
    0x9: (Category.FIXED, 16),
    0xA: (Category.VARIABLE, 1),
    0xB: (Category.VARIABLE, 4),
    0xC: (Category.COMPOUND, 1),
    0xD: (Category.COMPOUND, 4),
    0xE: (Category.ARRAY, 1),
    0xF: (Category.ARRAY, 4),
}


@pytest.mark.parametrize("row", FORMAT_CODES, ids=lambda row: f"{row.code:#04x}")
def test_the_high_nibble_says_the_layout(row: FormatCode) -> None:
    assert (row.category, row.width) == LAYOUT[row.code >> 4]


def test_no_code_stands_twice_and_every_type_has_one() -> None:
    assert len(BY_CODE) == len(FORMAT_CODES) == 39
    assert {row.type for row in FORMAT_CODES} == set(AmqpType)

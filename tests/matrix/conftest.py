"""What the matrix found, kept until all of it has run, then written down."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.matrix import support
from tests.matrix.configs import all_variants
from tests.matrix.shared import CASES
from tests.matrix.support import Measured

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE_MATRIX = {
    "test_every_split_of_every_variant_is_the_whole_model": len(all_variants()),
    "test_every_type_in_shares_is_the_whole_model": len(CASES),
}
"""The tests that the page is made from, and how many there are of each."""


@pytest.fixture(scope="session")
def measured(request: pytest.FixtureRequest) -> Iterator[Measured]:
    """What the matrix found; written down at the end if all of it ran. Fails when a row is another than before."""
    found = Measured()
    before = support.PAGE.read_text() if support.PAGE.exists() else ""
    yield found
    ran = Counter(getattr(item, "originalname", "") for item in request.session.items)
    if any(ran[name] < count for name, count in WHOLE_MATRIX.items()):
        return
    text = support.page(found)
    support.PAGE.parent.mkdir(exist_ok=True)
    support.PAGE.write_text(text)
    changed = support.changed_rows(before, text)
    assert not changed, f"{support.PAGE.name} changed for {', '.join(changed)}; look at it, then commit it"

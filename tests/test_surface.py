"""Everything that users can name is listed in ``surface.txt``."""

from tests.record_surface import SURFACE, surface


def test_the_list_of_the_surface_is_current() -> None:
    listed, found = set(SURFACE.read_text().splitlines()), set(surface().splitlines())
    changes = {"removed": sorted(listed - found), "not listed": sorted(found - listed)}
    assert not any(changes.values()), f"{changes}; write the list with `python -m tests.record_surface`."

"""The search for ids, compared with a plain loop."""

from hypothesis import given
from hypothesis import strategies as st

from graphfcl.graph.ids import text_array
from graphfcl.service.snapshots import IdSearch

ids = st.lists(st.text(alphabet="abAB .%İß", min_size=1, max_size=6), min_size=1, max_size=12, unique=True)


@given(ids, st.text(alphabet="abAB .%İß", max_size=3), st.integers(1, 8))
def test_search(listed: list[str], query: str, limit: int) -> None:
    wanted = query.strip().lower()
    expected: list[int] = []
    tests = (lambda text: text == wanted, lambda text: text.startswith(wanted), lambda text: wanted in text)
    for fits in tests:
        expected += [row for row, text in enumerate(listed) if fits(text.lower()) and row not in expected]
    if not wanted:
        expected = list(range(len(listed)))
    search = IdSearch.of(text_array(listed))
    assert search.search(query, limit) == expected[:limit]
    pages: list[int] = []
    while page := search.search(query, limit, pages[-1] if pages else None):
        pages += page
    assert pages == expected

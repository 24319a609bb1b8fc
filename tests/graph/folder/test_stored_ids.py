"""Keys of texts against the formula, one text at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphfcl.graph.folder import stored_ids as module
from graphfcl.graph.folder.stored_ids import text_keys
from graphfcl.graph.ids import pack_texts, unpack_texts

MASK = 2**64 - 1


def mix(number: int) -> int:
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def key_of(text: str, seed: int) -> int:
    state = [int(number) for number in np.random.SeedSequence(seed).generate_state(257, np.uint64)]
    table, base = state[:256], state[256] | 1
    letters = text.encode("utf-8", "surrogatepass")
    total = sum(table[letter] * pow(base, place, 2**64) for place, letter in enumerate(letters))
    return mix((total + len(letters)) & MASK)


@given(texts=st.lists(st.text(max_size=20), max_size=20), seed=st.integers(0, 3), step=st.sampled_from([1, 7, 2**18]))
def test_keys_are_those_of_the_formula(texts: list[str], seed: int, step: int) -> None:
    content, starts = pack_texts(texts)
    before, module.STEP = module.STEP, step
    try:
        found = text_keys(content, starts, seed)
    finally:
        module.STEP = before
    assert found.tolist() == [key_of(text, seed) for text in texts]
    assert unpack_texts(content, starts).tolist() == texts


def test_similar_texts_have_different_keys() -> None:
    texts = [f"node-{number}" for number in range(200_000)]
    assert np.unique(text_keys(*pack_texts(texts), 0)).size == 200_000

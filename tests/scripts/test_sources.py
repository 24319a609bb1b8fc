"""The builders of the shipped graphs, on excerpts of what they read."""

from pathlib import Path

import pytest

from graphfcl import Graph, InputError
from scripts.sources.debian import build_debian, read_packages
from scripts.sources.wordnet import build_wordnet, read_synsets
from scripts.sources.words import word_features

DUMP = """\
Package: tool
Section: utils
Depends: libone (>= 1.2-3), libtwo:any (<< 2) | libthree, mail-transport-agent
Pre-Depends: base-files
Recommends: manual,
 helper (= 1:2.0),
 foreign
Suggests: tool, absent
Breaks: enemy
Description: a Tool for libraries
Filename: pool/main/t/tool_1_all.deb

Package: libone
Section: libs
Enhances: tool
Description: first library
Filename: pool/main/l/libone_1_all.deb

Package: libtwo
Section: libs
Depends: libone | libthree
Description: second library
Filename: pool/main/l/libtwo_1_all.deb

Package: libthree
Section: libs
Description: third library, without libone
Filename: pool/main/l/libthree_1_all.deb

Package: base-files
Section: utils
Filename: pool/main/b/base-files_1_all.deb

Package: manual
Section: utils
Filename: pool/main/m/manual_1_all.deb

Package: helper
Section: utils
Filename: pool/main/h/helper_1_all.deb

Package: enemy
Section: utils
Filename: pool/main/e/enemy_1_all.deb

Package: mailer
Section: utils
Provides: mail-transport-agent
Filename: pool/main/m/mailer_1_all.deb

Package: foreign
Section: utils
Filename: ./foreign_1_all.deb

Package: lonely
Section: games
Depends: libone
Filename: pool/main/l/lonely_1_all.deb

Package: bare
Filename: pool/main/b/bare_1_all.deb
"""

NOUNS = """\
  1 This software and database is being provided to you, the LICENSEE, by
00001740 03 n 01 entity 0 001 ~ 00002137 n 0000 | that which is perceived; "it was full of rackets"
00002137 03 n 02 abstraction 0 abstract_entity 0 002 @ 00001740 n 0000 + 00023100 v 0101 | a general concept
00007846 18 n 01 person 0 001 = 00003553 s 0000 | a human being; "there was too much for one person to do"
"""
VERBS = """\
00023100 29 v 01 breathe 0 002 + 00002137 n 0101 $ 99999999 v 0000 02 + 02 00 + 08 00 | draw air into the lungs
"""
ADJECTIVES = """\
00001740 00 a 01 able 0 002 & 00003553 s 0000 = 00007846 n 0000 | having the means; "able to swim"
00003553 00 s 0a one 0 two 0 three 0 four 0 five 0 six 0 seven 0 eight 0 nine 0 ten 0 001 & 00001740 a 0000 | ten words
"""
ADVERBS = """\
00001740 02 r 01 ably 0 001 \\ 00001740 a 0101 | with competence
"""


def neighbours(graph: Graph) -> dict[str, set[str]]:
    ids = graph.node_ids.tolist()
    return {ids[row]: {ids[c] for c in graph.adjacency[[row]].indices} for row in range(graph.node_count)}


def test_stanzas_of_the_main_archive_are_read() -> None:
    packages = {fields["Package"]: fields for fields in read_packages(DUMP)}
    assert "foreign" not in packages
    assert "bare" not in packages
    assert packages["tool"]["Recommends"] == "manual, helper (= 1:2.0), foreign"
    assert packages["tool"]["Section"] == "utils"


def test_the_package_graph() -> None:
    graph = build_debian(DUMP, min_packages=2, min_nodes=2)
    assert graph.class_names == ("libs", "utils")
    assert graph.node_ids.tolist() == sorted(graph.node_ids.tolist())
    edges = neighbours(graph)
    assert edges["tool"] == {"libone", "libtwo", "libthree", "base-files", "manual", "helper"}
    assert edges["libtwo"] == {"tool", "libone", "libthree"}
    assert edges["libthree"] == {"tool", "libtwo"}
    assert edges["enemy"] == edges["mailer"] == set()
    assert "lonely" not in edges


def test_the_words_of_packages() -> None:
    graph = build_debian(DUMP, min_packages=2, min_nodes=2)
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["library"]
    number = graph.nodes_of(["libone", "libthree", "tool"])
    assert graph.features[number].toarray().tolist() == [[1], [1], [0]]


def test_a_dump_without_packages_is_refused() -> None:
    with pytest.raises(InputError, match="the dump has no section with enough packages"):
        build_debian("")


def test_synsets_are_read() -> None:
    entity, abstraction, person = read_synsets(NOUNS, "n")
    assert (entity.key, entity.word, entity.lexicographer_file) == ("n00001740", "entity", "noun.Tops")
    assert entity.pointers == ("n00002137",)
    assert entity.gloss == "that which is perceived; "
    assert abstraction.pointers == ("n00001740", "v00023100")
    assert abstraction.gloss == "a general concept"
    assert person.lexicographer_file == "noun.person"
    assert person.pointers == ("a00003553",)
    assert "too much" not in person.gloss


def test_verbs_have_frames_after_their_pointers() -> None:
    (breathe,) = read_synsets(VERBS, "v")
    assert breathe.pointers == ("n00002137", "v99999999")
    assert breathe.lexicographer_file == "verb.body"


def test_satellites_are_adjectives_and_words_are_counted_in_hexadecimal() -> None:
    able, numeral = read_synsets(ADJECTIVES, "a")
    assert able.pointers == ("a00003553", "n00007846")
    assert numeral.key == "a00003553"
    assert numeral.pointers == ("a00001740",)


def write_wordnet(folder: Path) -> Path:
    for part, text in (("noun", NOUNS), ("verb", VERBS), ("adj", ADJECTIVES), ("adv", ADVERBS)):
        (folder / f"data.{part}").write_text(text)
    return folder


def test_the_synset_graph(tmp_path: Path) -> None:
    graph = build_wordnet(write_wordnet(tmp_path), min_synsets=1, min_nodes=1)
    assert neighbours(graph) == {
        "n00001740": {"n00002137"},
        "n00002137": {"n00001740", "v00023100"},
        "n00007846": {"a00003553", "a00001740"},
        "v00023100": {"n00002137"},
        "a00001740": {"a00003553", "n00007846", "r00001740"},
        "a00003553": {"a00001740", "n00007846"},
        "r00001740": {"a00001740"},
    }
    assert graph.feature_names is not None
    assert "swim" not in graph.feature_names.tolist()
    assert "means" in graph.feature_names.tolist()


def test_small_lexicographer_files_are_left_out(tmp_path: Path) -> None:
    graph = build_wordnet(write_wordnet(tmp_path), min_synsets=2, min_nodes=1)
    assert graph.class_names == ("adj.all", "noun.Tops")
    assert graph.node_count == 4


def test_a_folder_without_wordnet_is_refused(tmp_path: Path) -> None:
    write_wordnet(tmp_path)
    (tmp_path / "data.adj").unlink()
    with pytest.raises(InputError, match=r"has no data\.adj: install Debian's package wordnet-base"):
        build_wordnet(tmp_path)


def test_words_count_once_a_text_and_only_if_common() -> None:
    matrix, words = word_features(["Red red fox", "red hen", "x fox-hen 42", ""], 2)
    assert words == ["fox", "hen", "red"]
    assert matrix.toarray().tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0]]

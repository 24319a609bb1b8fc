"""Names to graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import InputError, build_graph, find_dataset, load_dataset, write_npz
from graphfcl.datasets import DATA_VARIABLE, all_datasets, data_folder
from graphfcl.datasets.registry import PLACES

NEEDING_FILES = [dataset.name for dataset in all_datasets() if dataset.files]


@pytest.fixture
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


def write_folder(folder: Path) -> Path:
    (folder / "nodes.csv").write_text("id,label,topic,size\n1,a,x,1\n2,b,y,2\n")
    (folder / "edges.csv").write_text("source,target\n1,2\n")
    return folder


def test_names_are_unique_and_described() -> None:
    names = [dataset.name for dataset in all_datasets()]
    assert names == [*PLACES]
    assert len(set(names)) == len(names)
    assert all(dataset.title and dataset.source for dataset in all_datasets())


@pytest.mark.parametrize("name", [dataset.name for dataset in all_datasets()])
def test_every_name_is_found(name: str) -> None:
    dataset, options = find_dataset(name)
    assert dataset.name == name
    assert options == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("debain", "there is no dataset or file 'debain': did you mean 'debian'"),
        ("cora_ml", "did you mean 'cora-ml'"),
        ("qqq", "there is no dataset or file 'qqq': there are debian, wordnet"),
        ("debian:nodes=3", "debian has no option 'nodes': it has none"),
        ("synthetic:clases=3", "synthetic has no option 'clases': did you mean 'classes'"),
        ("synthetic:=3", r"options are written as NAME:key=value,key=value, and several values of one as key=a\+b"),
        ("synthetic:8,nodes=3", "options are written as NAME:key=value"),
        (3, "given by its name or a path, not by int"),
        ("friends.npz", r"friends\.npz does not exist"),
        ("missing/folder", "there is no dataset or file 'missing/folder'"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(name: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_dataset(name)


def test_the_file_of_a_table_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n1,a\n")
    with pytest.raises(
        InputError, match=r"nodes\.csv is a file, but no \.npz file: give the folder that holds the tab"
    ):
        load_dataset(f"{tmp_path / 'nodes.csv'}:label=label")


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize("name", NEEDING_FILES)
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    dataset, _ = find_dataset(name)
    assert dataset.missing_files(tmp_path) == dataset.missing_files(None) == dataset.files
    with pytest.raises(InputError, match=f"{name} needs the files .*no data folder is set.*{DATA_VARIABLE}"):
        load_dataset(name)
    with pytest.raises(InputError, match=f"{name} needs the files .* lacks ") as caught:
        load_dataset(name, data_dir=tmp_path)
    for file in dataset.files:
        assert file in str(caught.value)


def test_the_data_folder_is_the_given_one_or_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert data_folder(None) == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder(tmp_path / "other") == tmp_path / "other"
    with pytest.raises(InputError, match=r"the data folder .*nowhere does not exist"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv(DATA_VARIABLE, "")
    assert data_folder(None) is None


def test_a_graph_that_needs_no_files_needs_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "nowhere"))
    assert load_dataset("synthetic:nodes=50,classes=2,edges=60")[0].node_count == 50
    with pytest.raises(InputError, match=r"the data folder .*nowhere does not exist"):
        load_dataset("cora-ml")


def test_a_graph_file_is_a_name(tmp_path: Path) -> None:
    graph = build_graph(np.ones((2, 2)), np.eye(2), [0, 1])
    write_npz(graph, tmp_path / "friends.npz")
    loaded, protocol = load_dataset(str(tmp_path / "friends.npz"))
    assert loaded.sha256 == graph.sha256
    assert loaded.name == "friends"
    assert protocol is None


def test_a_folder_of_tables_is_a_name_and_its_columns_are_options(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,topic,words\nx,a,red fox\ny,b,red hen\n")
    (tmp_path / "edges.csv").write_text("one,other\nx,y\n")
    name = f"{tmp_path}:id=name,label=topic,text=words,source=one,target=other,min_nodes=1"
    graph, _ = load_dataset(name)
    assert graph.name == tmp_path.name
    assert graph.class_names == ("a", "b")
    assert graph.edge_count == 1
    assert graph.text is not None
    assert graph.text.min_nodes == 1


@pytest.mark.parametrize("mark", ["+", ",", ", "])
def test_an_option_takes_several_names(tmp_path: Path, mark: str) -> None:
    (tmp_path / "nodes.csv").write_text("id,topic,price,stock,more\nx,a,1,2,3\ny,tbd,1,2,3\nz,NA,1,2,3\n")
    (tmp_path / "edges.csv").write_text("source,target\nx,y\n")
    graph, _ = load_dataset(f"{tmp_path}:features=price{mark}stock,missing=NA{mark}tbd,label=topic")
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["price", "stock"]
    assert graph.class_names == ("a",)


def test_a_path_is_a_name(tmp_path: Path) -> None:
    write_folder(tmp_path)
    assert load_dataset(tmp_path)[0].sha256 == load_dataset(str(tmp_path))[0].sha256


def test_options_of_a_folder_are_checked(tmp_path: Path) -> None:
    write_folder(tmp_path)
    with pytest.raises(InputError, match="has no option 'lable': did you mean 'label'"):
        load_dataset(f"{tmp_path}:lable=topic")
    with pytest.raises(InputError, match="min_nodes is 'few', it must be a whole number"):
        load_dataset(f"{tmp_path}:min_nodes=few")


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{tmp_path.name} has no nodes\.parquet, nodes\.csv or nodes\.tsv"):
        load_dataset(str(tmp_path))

"""TextNetwork: validation, derived quantities, and conversion to other libraries and back."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vhe.data.network import TextNetwork
from vhe.data.parts import NetworkParts
from vhe.errors import VHEError


@pytest.fixture
def network() -> TextNetwork:
    return TextNetwork(
        ["a", "b", "c", "d"],
        ["red fox", "brown fox", "blue sky", ""],
        [[1, 0], [0, 1], [1, 2], [2, 2]],
        ["animal", "animal", "sky", None],
        name="foxes",
    )


def test_links_are_distinct_undirected_and_without_loops(network: TextNetwork) -> None:
    assert network.links.tolist() == [[0, 1], [1, 2]]
    assert network.degrees.tolist() == [1, 2, 1, 0]
    assert network.edges.tolist() == [[1, 0], [0, 1], [1, 2], [2, 2]]
    assert repr(network) == "TextNetwork('foxes': 4 vertices, 2 links, 2 labels)"
    assert network.edges.dtype == network.links.dtype == np.int64


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_links_agree_with_sets(pairs: list[tuple[int, int]]) -> None:
    network = TextNetwork(range(7), ["x"] * 7, pairs)
    expected = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})
    assert list(map(tuple, network.links.tolist())) == expected
    assert network.degrees.sum() == 2 * len(expected)


def test_arrays_are_read_only_copies(network: TextNetwork) -> None:
    with pytest.raises(ValueError, match="read-only"):
        network.edges[0, 0] = 3
    edges = np.array([[0, 1]])
    other = network.with_edges(edges)
    edges[0, 0] = 3
    assert other.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([], [], []), "no vertices"),
        ((["a", "b"], ["x"], []), "2 ids but 1 texts"),
        ((["a", "a"], ["x", "y"], []), "duplicate id 'a', of vertices 0 and 1"),
        (([["a"], "b"], ["x", "y"], []), r"vertex 0 is \['a'\], which is not hashable"),
        ((["a", math.nan], ["x", "y"], []), "the id of vertex 1 is nan; give it an id"),
        ((["a", pd.NaT], ["x", "y"], []), "the id of vertex 1 is NaT"),
        ((pd.array(["a", None], dtype="string"), ["x", "y"], []), "the id of vertex 1 is <NA>"),
        ((["a", "b"], ["x", 3.5], []), "text of vertex 'b' is of type float"),
        ((["a", "b"], ["x", "y"], [[0, 2]]), r"edge 0 is \(0, 2\), but .* from 0 to 1"),
        ((["a", "b"], ["x", "y"], [[0, 1], [-1, 0]]), r"edge 1 is \(-1, 0\)"),
        ((["a", "b"], ["x", "y"], [[0.0, 1.0]]), "float64"),
        ((["a", "b"], ["x", "y"], [[0, 1, 1]]), r"\(m, 2\)"),
        ((["a", "b"], ["x", "y"], [[0, 1], [1]]), "some rows are not"),
        ((["a", "b"], ["x", "y"], [], ["l"]), "2 vertices but 1 labels"),
        ((["a", "b"], ["x", "y"], [], ["l", []]), "label of vertex 'b'"),
        ((["a", "b"], ["x", "y"], [], ["l", np.array([1, 2])]), "label of vertex 'b'"),
    ],
)
def test_invalid_arguments_are_refused(arguments: tuple, sentence: str) -> None:
    with pytest.raises(VHEError, match=sentence):
        TextNetwork(*arguments)


def test_index_suggests_a_similar_id(network: TextNetwork) -> None:
    assert network.index("c") == 2
    assert network.indices(["d", "a"]).tolist() == [3, 0]
    assert network.indices([]).dtype == np.int64
    long = TextNetwork(["scipy.fft", "numpy.fft"], ["", ""], [])
    with pytest.raises(VHEError, match=r"'scipy\.ftf' \(did you mean 'scipy\.fft'\?\)"):
        long.index("scipy.ftf")
    with pytest.raises(VHEError, match="there is 7, which is of another type"):
        TextNetwork([7], ["x"], []).indices(["7"])
    with pytest.raises(VHEError, match="no vertex"):
        network.index(["a"])


def test_numpy_ids_become_python_scalars() -> None:
    network = TextNetwork(np.array([3, 5]), ["x", "y"], [], np.array(["l", "m"]))
    assert [type(i) for i in network.ids] == [int, int]
    assert [type(label) for label in network.labels or ()] == [str, str]


def test_missing_labels_of_a_table_are_none() -> None:
    for labels in (["l", math.nan], ["l", pd.NaT], pd.array(["l", None], dtype="string")):
        assert TextNetwork(["a", "b"], ["x", "y"], [], labels).labels == ("l", None)


def test_with_edges_has_the_same_vertices_and_no_notes(network: TextNetwork) -> None:
    parts = NetworkParts(network.ids, network.texts, network.edges, network.labels)
    read = TextNetwork.from_parts(parts)
    assert read.notes == (
        "1 duplicate edge (in either direction) ignored in training",
        "1 self-loop ignored in training",
        "1 vertex without text",
    )
    assert TextNetwork.from_parts(parts, count_oddities=False).notes == ()
    other = read.with_edges(network.links[:1], name="half")
    assert (other.ids, other.texts, other.labels) == (read.ids, read.texts, read.labels)
    assert (other.name, other.notes, other.links.tolist()) == ("half", (), [[0, 1]])


def test_subnetwork_is_induced_in_the_given_order(network: TextNetwork) -> None:
    part = network.subnetwork(np.array([2, 1]))
    assert part.ids == ("c", "b")
    assert part.labels == ("sky", "animal")
    assert part.edges.tolist() == [[1, 0], [0, 0]]
    for wrong in ([0, 0], [4], [-1], [[0]], [True, False, True, False]):
        with pytest.raises(VHEError, match="subnetwork takes"):
            network.subnetwork(np.array(wrong))


def test_from_edges(network: TextNetwork) -> None:
    texts = dict(zip(network.ids, network.texts, strict=True))
    made = TextNetwork.from_edges(texts, [("b", "a"), ("b", "c"), ("c", "c")], {"a": 1})
    assert made.links.tolist() == network.links.tolist()
    assert made.labels == (1, None, None, None)
    assert made.notes == (
        "1 self-loop ignored in training",
        "1 vertex without text",
    )
    with pytest.raises(VHEError, match="edge 1: unknown vertex id 'z'"):
        TextNetwork.from_edges(texts, [("a", "b"), ("a", "z")])
    for wrong in ("ab", 5, ("a", "b", "c"), None):
        with pytest.raises(VHEError, match="edge 0 is"):
            TextNetwork.from_edges(texts, [wrong])  # type: ignore[list-item]
    with pytest.raises(VHEError, match="labels: unknown vertex id 'z'"):
        TextNetwork.from_edges(texts, [], {"z": 1})


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_round_trip(network: TextNetwork, directed: bool) -> None:
    import networkx

    before = network.with_edges(network.edges, directed=directed)
    graph = before.to_networkx()
    assert isinstance(graph, networkx.DiGraph) is directed
    assert graph.nodes["a"] == {"text": "red fox", "label": "animal"}
    after = TextNetwork.from_networkx(graph, label="label")
    assert (after.ids, after.texts, after.labels) == (before.ids, before.texts, before.labels)
    assert (after.name, after.directed) == ("foxes", directed)
    assert after.links.tolist() == before.links.tolist()
    with pytest.raises(VHEError, match=r"no attribute 'abstract' .*'text', 'label'"):
        TextNetwork.from_networkx(graph, text="abstract")


def test_pandas_round_trip(network: TextNetwork) -> None:
    vertices, edges = network.to_pandas()
    after = TextNetwork.from_pandas(vertices, edges, label="label")
    assert (after.ids, after.texts, after.labels) == (network.ids, network.texts, network.labels)
    assert after.edges.tolist() == network.edges.tolist()
    with pytest.raises(VHEError, match="no column 'abstract'; the columns found are 'id', 'text'"):
        TextNetwork.from_pandas(vertices, edges, text="abstract")
    gaps = vertices.assign(label=["x", None, "y", "z"])
    with pytest.raises(VHEError, match="row 1 of the vertices has no 'label'"):
        TextNetwork.from_pandas(gaps, edges, id="label")
    with pytest.raises(VHEError, match=r"row 2 of the edges: unknown vertex id 'q'"):
        TextNetwork.from_pandas(vertices, edges.assign(target=["a", "b", "q", "c"]))


def test_missing_texts_in_pandas_are_empty() -> None:
    import pandas

    vertices = pandas.DataFrame({"id": [1, 2], "text": ["fox", None]})
    edges = pandas.DataFrame({"source": [1], "target": [2]})
    network = TextNetwork.from_pandas(vertices, edges)
    assert network.texts == ("fox", "")
    assert [type(i) for i in network.ids] == [int, int]


def test_pyg_round_trip(network: TextNetwork) -> None:
    pytest.importorskip("torch_geometric")
    data = network.to_pyg()
    assert data.num_nodes == 4
    assert data.edge_index.shape == (2, 4)  # both directions of two links
    assert data.y.tolist() == [0, 0, 1, -1]
    assert data.label_names == ["animal", "sky"]
    after = TextNetwork.from_pyg(data, data.texts, data.ids)
    assert after.ids == network.ids
    assert after.edges.tolist() == network.links.tolist()
    assert after.labels == (0, 0, 1, None)
    assert not after.directed
    with pytest.raises(VHEError, match="4 vertices but 3 texts"):
        TextNetwork.from_pyg(data, data.texts[:3])
    directed = network.with_edges([[1, 0]], directed=True).to_pyg()
    assert TextNetwork.from_pyg(directed, directed.texts).edges.tolist() == [[1, 0]]

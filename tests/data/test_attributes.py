"""Vectors of vertices and weights of edges: checks, conversions, and what keeps them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from vhe.data.network import TextNetwork
from vhe.data.parts import NetworkParts
from vhe.errors import VHEError

VECTORS = [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0], [5.0, 6.0]]
WEIGHTS = [2.0, 3.0, 0.5, 9.0]


@pytest.fixture
def network() -> TextNetwork:
    return TextNetwork(
        ["a", "b", "c", "d"],
        ["red fox", "brown fox", "blue sky", ""],
        [[1, 0], [0, 1], [1, 2], [2, 2]],
        vectors=VECTORS,
        edge_weights=WEIGHTS,
        name="foxes",
    )


def test_vectors_and_weights_are_read_only_copies(network: TextNetwork) -> None:
    assert network.vectors is not None
    assert network.edge_weights is not None
    assert network.vectors.tolist() == VECTORS
    assert (network.vectors.dtype, network.edge_weights.dtype) == (np.float32, np.float64)
    for array in (network.vectors, network.edge_weights, network.link_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    own = np.ones((4, 2), dtype=np.float32)
    other = network.with_edges([], vectors=own)
    own[0] = 7
    assert (other.vectors == 1).all()
    view = own[:]
    view.setflags(write=False)  # its owner can still write
    other = network.with_edges([], vectors=view)
    own[0] = 8
    assert (other.vectors[0] == 7).all()
    assert repr(network) == "TextNetwork('foxes': 4 vertices, 2 links, 2-dimensional vectors)"


def test_vectors_are_shared_not_copied_between_networks(network: TextNetwork) -> None:
    assert network.with_edges([]).vectors is network.vectors


def test_networks_without_them(network: TextNetwork) -> None:
    bare = TextNetwork(network.ids, network.texts, network.edges)
    assert bare.vectors is bare.edge_weights is bare.link_weights is None
    assert bare.relative_weights(bare.links) is None


def test_weights_of_links_are_sums_over_their_edges(network: TextNetwork) -> None:
    assert network.links.tolist() == [[0, 1], [1, 2]]
    assert network.link_weights.tolist() == [5.0, 0.5]
    pairs = np.array([[2, 1], [0, 1], [0, 2]])  # the last one is not linked
    assert network.relative_weights(pairs).tolist() == [0.5 / 2.75, 5.0 / 2.75, 1.0]
    empty = network.with_edges(np.empty((0, 2), dtype=int), edge_weights=[])
    assert empty.link_weights.tolist() == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"vectors": VECTORS[:3]}, "4 vertices but 3 vectors; give a row of zeros"),
        ({"vectors": [[1], [2], [np.nan], [4]]}, r"row 2 \('c'\), column 0 is nan"),
        ({"vectors": [[1], [2], [3], [4, 5]]}, r"row 3 \('d'\) has 2 values but row 0 \('a'\)"),
        ({"edge_weights": WEIGHTS[:3]}, r"shape \(3,\) for 4 edges; give one weight per edge"),
        ({"edge_weights": [1, 1, 0, 1]}, r"weight of edge 2 is 0\.0; weights must be positive"),
        ({"edge_weights": [1, -2, 1, 1]}, r"weight of edge 1 is -2\.0"),
        ({"edge_weights": [1, 1, 1, np.nan]}, "weight of edge 3 is nan"),
        ({"edge_weights": [1, 1, 1, np.inf]}, "weight of edge 3 is inf"),
        ({"edge_weights": ["x", 1, 1, 1]}, "edge weights must be numbers"),
    ],
)
def test_wrong_values_are_refused(network: TextNetwork, given: dict, sentence: str) -> None:
    with pytest.raises(VHEError, match=sentence):
        TextNetwork(network.ids, network.texts, network.edges, **given)


def test_notes_of_networks_with_vectors_and_weights(network: TextNetwork) -> None:
    parts = NetworkParts(
        network.ids,
        network.texts,
        network.edges,
        vectors=network.vectors,
        edge_weights=network.edge_weights,
    )
    assert TextNetwork.from_parts(parts).notes == (
        "1 duplicate edge (in either direction) added by weight",
        "1 self-loop ignored in training",
        "1 vertex without text",
        "1 vertex without vector",
    )


def test_subnetwork_and_with_edges_keep_them(network: TextNetwork) -> None:
    part = network.subnetwork([2, 1])
    assert part.vectors.tolist() == [VECTORS[2], VECTORS[1]]
    assert part.edges.tolist() == [[1, 0], [0, 0]]
    assert part.edge_weights.tolist() == [0.5, 9.0]
    other = network.with_edges([[0, 3]])
    assert other.vectors.tolist() == VECTORS
    assert other.edge_weights is None  # those of other edges
    assert network.with_edges([[0, 3]], edge_weights=[4]).link_weights.tolist() == [4]


# Splits


def weighted_network(n: int = 30, lines: int = 120) -> TextNetwork:
    rng = np.random.default_rng(3)
    return TextNetwork(
        range(n),
        [f"text {k}" for k in range(n)],
        rng.integers(n, size=(lines, 2)),
        vectors=rng.normal(size=(n, 3)),
        edge_weights=rng.uniform(0.5, 4, size=lines),
    )


def _rows(network: TextNetwork, links: np.ndarray) -> list[int]:
    known = [tuple(link) for link in network.links.tolist()]
    return [known.index(tuple(sorted(link))) for link in links.tolist()]


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_splits_keep_vectors_and_weights(protocol) -> None:
    network = weighted_network()
    train, test = network.split_edges(0.6, seed=1, protocol=protocol)
    assert train.vectors is network.vectors
    if protocol == "clean":
        np.testing.assert_array_equal(
            train.edge_weights, network.link_weights[_rows(network, train.edges)]
        )
    else:
        known = {(*e, w) for e, w in zip(network.edges.tolist(), network.edge_weights, strict=True)}
        assert {
            (*e, w) for e, w in zip(train.edges.tolist(), train.edge_weights, strict=True)
        } <= known
    train, test = network.split_vertices(0.6, seed=1, protocol=protocol)
    np.testing.assert_array_equal(train.vectors, network.vectors[list(train.ids)])
    ids = list(test.unseen.ids)
    np.testing.assert_array_equal(test.unseen.vectors, network.vectors[ids])
    own = np.array(train.ids)[train.links]
    np.testing.assert_allclose(train.link_weights, network.link_weights[_rows(network, own)])


@pytest.mark.parametrize("protocol", ["clean", "lines"])
@pytest.mark.parametrize("kind", ["years", "dates", "objects", "moments"])
def test_a_split_by_time_trains_on_the_past(protocol, kind: str) -> None:
    network = weighted_network()
    m = len(network.edges)
    rng = np.random.default_rng(0)
    moment = rng.permutation(m) if kind == "moments" else rng.integers(1990, 2010, size=m)
    given = {
        "years": moment,
        "moments": moment / 7,
        "dates": np.datetime64("1990-01-01") + moment.astype("timedelta64[D]"),
    }.get(kind)
    if kind == "objects":
        import pandas

        given = pandas.Series(pandas.to_datetime(moment.astype(str), format="%Y", utc=True))
    train, test = network.split_edges(0.6, seed=1, protocol=protocol, time=given)
    first: dict[tuple[int, int], int] = {}
    for edge, t in zip(np.sort(network.edges, axis=1).tolist(), moment.tolist(), strict=True):
        first[tuple(edge)] = min(t, first.get(tuple(edge), t))
    if protocol == "clean":
        past = [first[tuple(e)] for e in train.links.tolist()]
        future = [first[tuple(e)] for e in test.pairs.tolist()]
        assert len(past) + len(future) == len(network.links)
        # later edges of a link do not add to its weight
        cut = max(past)
        totals = {tuple(e): 0.0 for e in train.links.tolist()}
        rows = zip(
            np.sort(network.edges, axis=1).tolist(), moment, network.edge_weights, strict=True
        )
        for edge, t, weight in rows:
            if t <= cut and edge[0] != edge[1]:
                totals[tuple(edge)] += weight
        np.testing.assert_allclose(train.edge_weights, list(totals.values()))
    else:
        row = {w: t for w, t in zip(network.edge_weights.tolist(), moment.tolist(), strict=True)}
        past = [row[w] for w in train.edge_weights.tolist()]
        future = sorted(moment.tolist())[len(past) :]
        assert len(test) == len(future)
    assert max(past) < min(future)
    assert abs(len(past) / (len(past) + len(future)) - 0.6) < 0.06
    assert test.seed == 1


def test_edges_of_one_time_are_not_divided() -> None:
    network = TextNetwork(range(5), [""] * 5, [[0, 1], [1, 2], [2, 3], [3, 4]])
    train, test = network.split_edges(0.5, time=[1, 2, 2, 2])
    assert (train.edges.tolist(), len(test)) == ([[0, 1]], 3)
    train, test = network.split_edges(0.01, time=[1, 1, 1, 2])
    assert (len(train.edges), test.pairs.tolist()) == (3, [[3, 4]])


@pytest.mark.parametrize(
    ("time", "sentence"),
    [
        ([1, 2, 3], r"shape \(3,\) for 4 edges; give one time per edge"),
        ([1, 2, np.nan, 3], "edge 2 has no time"),
        ([1, None, 2, 3], "edge 1 has no time"),
        (np.array(["2000", "NaT", "2001", "2002"], dtype="M8[Y]"), "edge 1 has no time"),
        (["2000", "1", "2", "3"], "numbers or of dates"),
        (np.array(["2000", "1", "2", "3"], dtype=object), "numbers or of dates"),
        (np.array([1, "a", 2, 3], dtype=object), "numbers or of dates"),
        ([1, 1, 1, 1], "all edges have the same time"),
    ],
)
def test_wrong_times_are_refused(time, sentence: str) -> None:
    network = TextNetwork(range(5), [""] * 5, [[0, 1], [1, 2], [2, 3], [3, 4]])
    with pytest.raises(VHEError, match=sentence):
        network.split_edges(0.5, time=time)


# Conversions


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_round_trip(network: TextNetwork, directed: bool) -> None:
    before = network.with_edges(network.edges, edge_weights=WEIGHTS, directed=directed)
    graph = before.to_networkx()
    assert graph.nodes["b"]["vector"].tolist() == VECTORS[1]
    assert graph.edges["a", "b"]["weight"] == (3.0 if directed else 5.0)
    after = TextNetwork.from_networkx(graph, vector="vector", weight="weight")
    np.testing.assert_array_equal(after.vectors, before.vectors)
    assert after.link_weights.tolist() == before.link_weights.tolist()


def test_networkx_without_texts_and_with_gaps() -> None:
    import networkx

    graph = networkx.Graph()
    graph.add_node("a", x=[1, 2])
    graph.add_node("b")
    graph.add_edge("a", "b")
    graph.add_edge("b", "b", w=4)
    network = TextNetwork.from_networkx(graph, text=None, vector="x", weight="w")
    assert network.texts == ("", "")
    assert network.vectors.tolist() == [[1, 2], [0, 0]]
    assert network.edge_weights.tolist() == [1, 4]
    with pytest.raises(VHEError, match="no vertex has a vector; check the name"):
        TextNetwork.from_networkx(graph, text=None, vector="y")
    graph.nodes["b"]["x"] = [1, 2, 3]
    with pytest.raises(VHEError, match=r"row 1 \('b'\) has 3 values but row 0 \('a'\) has 2"):
        TextNetwork.from_networkx(graph, text=None, vector="x")
    graph.edges["a", "b"]["w"] = -1
    with pytest.raises(VHEError, match=r"weight of edge 0 is -1\.0"):
        TextNetwork.from_networkx(graph, text=None, weight="w")


def test_pandas_round_trip(network: TextNetwork) -> None:
    vertices, edges = network.to_pandas()
    assert list(vertices) == ["id", "text", "vector"]
    assert list(edges) == ["source", "target", "weight"]
    after = TextNetwork.from_pandas(vertices, edges, vector="vector", weight="weight")
    np.testing.assert_array_equal(after.vectors, network.vectors)
    assert after.edge_weights.tolist() == WEIGHTS
    plain = TextNetwork(network.ids, network.texts, network.edges).to_pandas()
    assert [list(table) for table in plain] == [["id", "text"], ["source", "target"]]


def test_pandas_columns_of_numbers_and_gaps() -> None:
    import pandas

    edges = pandas.DataFrame({"source": ["a"], "target": ["b"], "w": [None]})
    vertices = pandas.DataFrame({"id": ["a", "b"], "p": [1, 2], "q": [0.5, None]})
    vertices["list"] = [[1.0, 2.0], None]
    network = TextNetwork.from_pandas(vertices, edges, text=None, vector="list")
    assert network.vectors.tolist() == [[1, 2], [0, 0]]
    assert network.texts == ("", "")
    network = TextNetwork.from_pandas(
        vertices.fillna({"q": 3}), edges, text=None, vector=["p", "q"]
    )
    assert network.vectors.tolist() == [[1, 0.5], [2, 3]]
    with pytest.raises(VHEError, match=r"row 1 \('b'\), column 1 is nan"):
        TextNetwork.from_pandas(vertices, edges, text=None, vector=["p", "q"])
    with pytest.raises(VHEError, match="row 0 of the edges has no 'w'"):
        TextNetwork.from_pandas(vertices, edges, text=None, weight="w")
    with pytest.raises(VHEError, match="the vertices have no column 'z'"):
        TextNetwork.from_pandas(vertices, edges, text=None, vector=["p", "z"])


class PyG(SimpleNamespace):
    """The part of torch_geometric's Data that is read, which `baselines` alone installs."""

    def get(self, name: str) -> object:
        return getattr(self, name, None)


def test_features_and_weights_of_pyg() -> None:
    data = PyG(
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_weight=torch.tensor([2.0, 2.0, 3.0, 3.0]),
        x=torch.eye(3).to_sparse(),
        y=None,
        num_nodes=3,
        is_directed=lambda: False,
    )
    network = TextNetwork.from_pyg(data)  # type: ignore[arg-type]
    assert network.texts == ("", "", "")
    assert network.vectors.tolist() == np.eye(3).tolist()
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.edge_weights.tolist() == [2, 3]


def test_attributes_of_edges_that_are_not_used_are_reported() -> None:
    import networkx
    import pandas

    vertices = pandas.DataFrame({"id": [1, 2], "text": ["a", "b"]})
    edges = pandas.DataFrame({"source": [1], "target": [2], "weight": [2.0], "time": [1999]})
    found = TextNetwork.from_pandas(vertices, edges, weight="weight")
    assert found.notes == ("edges: ignored: time",)
    graph = networkx.Graph()
    graph.add_nodes_from([(1, {"text": "a"}), (2, {"text": "b"})])
    graph.add_edge(1, 2, type="cites", weight=2.0)
    assert TextNetwork.from_networkx(graph, weight="weight").notes == ("edges: ignored: type",)
    assert TextNetwork.from_networkx(graph).notes == ("edges: ignored: type, weight",)
    data = PyG(
        num_nodes=2,
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        edge_type=torch.zeros(2),
        x=None,
        y=None,
        is_directed=lambda: False,
    )
    assert "edges: ignored: edge_type" in TextNetwork.from_pyg(data).notes  # type: ignore[arg-type]


def test_pyg_round_trip(network: TextNetwork) -> None:
    pytest.importorskip("torch_geometric")
    data = network.to_pyg()
    assert data.x.tolist() == VECTORS
    assert data.edge_weight.tolist() == [5, 0.5, 5, 0.5]
    after = TextNetwork.from_pyg(data, data.texts, data.ids)
    assert after.vectors.tolist() == VECTORS
    assert after.link_weights.tolist() == [5, 0.5]
    assert TextNetwork.from_pyg(data).texts == ("",) * 4

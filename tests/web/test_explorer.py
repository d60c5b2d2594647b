"""The answers of the explorer agree with the model, for any hashable ids."""

import json
from collections.abc import Callable, Hashable

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.web.explorer import Explorer, UnknownVertexError, json_value, segments


def test_suggestions_equal_those_of_the_model(explorer: Explorer, fitted: VHE) -> None:
    answer = explorer.suggestions(3, 5)
    expected = fitted.suggest_links("v3", 5)
    assert answer["id"] == "v3"
    assert [link["id"] for link in answer["links"]] == [s.id for s in expected]
    probabilities = [link["probability"] for link in answer["links"]]
    assert probabilities == pytest.approx([s.probability for s in expected])
    assert [fitted.network_.ids[link["number"]] for link in answer["links"]] == [
        s.id for s in expected
    ]


def test_all_vertices_without_a_link_are_suggested_for_large_k(
    explorer: Explorer, fitted: VHE
) -> None:
    answer = explorer.suggestions(4, 1000)
    linked = {link["number"] for link in explorer.vertex(4)["links"]}
    assert {link["number"] for link in answer["links"]} == set(range(60)) - linked - {4}
    expected = [s.id for s in fitted.suggest_links("v4", 1000)]
    assert [link["id"] for link in answer["links"]] == expected


def test_vertex_text_links_and_uncertainty(explorer: Explorer, fitted: VHE) -> None:
    network = fitted.network_
    for number in (0, 7, 59):
        vertex = explorer.vertex(number)
        ends = network.links[(network.links == number).any(axis=1)]
        assert vertex["text"] == network.texts[number]
        assert [link["number"] for link in vertex["links"]] == sorted(set(ends.ravel()) - {number})
        assert vertex["uncertainty"] == pytest.approx(fitted.embedding_std_[number].mean())


def test_pair_equals_the_explanation_of_the_model(explorer: Explorer, fitted: VHE) -> None:
    pair = explorer.pair(0, 5)
    expected = fitted.explain("v0", "v5")
    assert pair["balanced_probability"] == expected.balanced_probability
    assert pair["text_share"] + pair["structure_share"] == pytest.approx(1)
    assert pair["parts"] == expected.parts
    assert pair["score"] == expected.score
    assert json.loads(json.dumps(pair["parts"])) == expected.parts
    for end, side in ((0, pair["source"]), (5, pair["target"])):
        assert side["text"] == fitted.network_.texts[end]
        assert "".join(segment for segment, _ in side["segments"]) == side["text"]
        assert max(weight for _, weight in side["segments"]) == 1
    assert pair["linked"] == (5 in [link["number"] for link in explorer.vertex(0)["links"]])


def test_a_text_is_embedded_near_vertices_of_its_topic(explorer: Explorer, fitted: VHE) -> None:
    network = fitted.network_
    answer = explorer.embed_text(network.texts[2] + " unknownword", 8)
    assert answer["words"] == answer["known"] + 1
    assert len(answer["nearest"]) == 8
    labels = [link["label"] for link in answer["nearest"]]
    assert labels.count(network.labels[2]) > 4
    probabilities = [link["probability"] for link in answer["nearest"]]
    assert probabilities == sorted(probabilities, reverse=True)
    scores = fitted.score_texts([network.texts[2] + " unknownword"])[0]
    best = np.argsort(-scores, kind="stable")[:8]
    assert [link["number"] for link in answer["nearest"]] == best.tolist()
    expected = fitted.probability(scores[best], balanced=False)
    assert probabilities == pytest.approx(expected.tolist())
    (mean,), _ = fitted.embed_texts([network.texts[2] + " unknownword"])
    cosines = dict(fitted.nearest(mean, 60))
    similarities = [cosines[link["id"]] for link in answer["nearest"]]
    assert [link["similarity"] for link in answer["nearest"]] == pytest.approx(
        similarities, abs=1e-5
    )
    x, y = np.array(explorer.map["x"]), np.array(explorer.map["y"])
    distance = np.hypot(x - answer["x"], y - answer["y"])
    same = np.array([label == network.labels[2] for label in network.labels])
    assert distance[same].mean() < distance[~same].mean()


@pytest.mark.parametrize("text", ["", "  ", "qqqq zzzz", "?!"])
def test_a_text_without_known_words_is_rejected(explorer: Explorer, text: str) -> None:
    with pytest.raises(VHEError, match="no words of the model"):
        explorer.embed_text(text, 5)


def test_search_ranks_ids_before_texts(explorer: Explorer, fitted: VHE) -> None:
    assert [v["id"] for v in explorer.search("V12", 5)["vertices"]] == ["v12"]
    network = fitted.network_
    found = explorer.search("  T1W3   common0 ", 3)
    expected = [k for k, t in enumerate(network.texts) if {"t1w3", "common0"} <= set(t.split())]
    assert sorted(found["numbers"]) == expected
    assert found["total"] == len(expected)
    assert len(found["vertices"]) == min(3, len(expected))
    assert explorer.search("nowhere", 3)["total"] == 0


@pytest.mark.parametrize("number", [-1, 60, 10**30])
def test_unknown_vertex_number(explorer: Explorer, number: int) -> None:
    with pytest.raises(UnknownVertexError, match="from 0 to 59"):
        explorer.vertex(number)
    with pytest.raises(UnknownVertexError):
        explorer.suggestions(number, 3)
    with pytest.raises(UnknownVertexError):
        explorer.pair(0, number)


def test_any_hashable_id(network: TextNetwork, hasty: Callable[..., VHE]) -> None:
    odd: list[Hashable] = [7, "7", ("a", 1), "x/y?z#&=%", "\ud800", "", None, 1.5, float("inf")]
    ids = odd + list(network.ids[len(odd) :])
    model = hasty().fit(TextNetwork(ids, network.texts, network.links))
    explorer = Explorer(model, np.zeros((len(ids), 2)))
    assert explorer.find("7")["number"] == 1  # the string, not the integer that prints the same
    assert explorer.find("('a', 1)")["number"] == 2
    assert explorer.find("x/y?z#&=%")["number"] == 3
    assert [explorer.vertex(k)["id"] for k in range(9)] == [
        *(7, "7", "('a', 1)", "x/y?z#&=%", "\ud800", "", None, 1.5, "inf")
    ]
    assert explorer.suggestions(2, 3)["links"]
    with pytest.raises(UnknownVertexError, match="'b'"):
        explorer.find("b")


def test_segments_preserve_the_text() -> None:
    assert segments("", []) == []
    assert segments("no words", []) == [("no words", 0.0)]
    assert segments("a b", [("a", 0.5), ("b", 0.5)]) == [("a b", 0.0)]  # no word is above the mean
    twice = segments("is this is", [("is", 0.0), ("this", 0.0), ("is", 1.0)])
    assert twice == [("is this ", 0.0), ("is", 1.0)]
    assert segments("ﬁne day", [("fine", 0.9), ("day", 0.1)]) == [("ﬁne day", 0.0)]


def test_ids_and_labels_as_json() -> None:
    assert [json_value(v) for v in (None, 3, "a", ("b", 2), float("nan"))] == [
        *(None, 3, "a", "('b', 2)", "nan")
    ]

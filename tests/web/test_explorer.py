"""What the explorer answers agrees with the model, whatever the ids are."""

from collections.abc import Callable, Hashable

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.web.explorer import Explorer, UnknownVertexError, pieces, plain


def test_suggestions_are_those_of_the_model(explorer: Explorer, fitted: VHE) -> None:
    answer = explorer.suggestions(3, 5)
    wanted = fitted.suggest_links("v3", 5)
    assert answer["id"] == "v3"
    assert [link["id"] for link in answer["links"]] == [s.id for s in wanted]
    chances = [link["probability"] for link in answer["links"]]
    assert chances == pytest.approx([s.probability for s in wanted])
    assert [fitted.network_.ids[link["number"]] for link in answer["links"]] == [
        s.id for s in wanted
    ]


def test_every_vertex_that_has_no_link_can_be_suggested(explorer: Explorer, fitted: VHE) -> None:
    answer = explorer.suggestions(4, 1000)
    linked = {link["number"] for link in explorer.vertex(4)["links"]}
    assert {link["number"] for link in answer["links"]} == set(range(60)) - linked - {4}
    wanted = [s.id for s in fitted.suggest_links("v4", 1000)]
    assert [link["id"] for link in answer["links"]] == wanted


def test_a_vertex_has_its_text_and_its_links(explorer: Explorer, fitted: VHE) -> None:
    network = fitted.network_
    for number in (0, 7, 59):
        vertex = explorer.vertex(number)
        ends = network.links[(network.links == number).any(axis=1)]
        assert vertex["text"] == network.texts[number]
        assert [link["number"] for link in vertex["links"]] == sorted(set(ends.ravel()) - {number})
        assert vertex["uncertainty"] == pytest.approx(fitted.embedding_std_[number].mean())


def test_a_pair_has_both_texts_and_the_words_behind_the_link(
    explorer: Explorer, fitted: VHE
) -> None:
    pair = explorer.pair(0, 5)
    wanted = fitted.explain("v0", "v5")
    assert pair["network_probability"] == wanted.network_probability
    assert pair["text_share"] + pair["structure_share"] == pytest.approx(1)
    for end, side in ((0, pair["source"]), (5, pair["target"])):
        assert side["text"] == fitted.network_.texts[end]
        assert "".join(piece for piece, _ in side["pieces"]) == side["text"]
        assert max(weight for _, weight in side["pieces"]) == 1
    assert pair["linked"] == (5 in [link["number"] for link in explorer.vertex(0)["links"]])


def test_a_known_text_lands_among_its_like(explorer: Explorer, fitted: VHE) -> None:
    network = fitted.network_
    answer = explorer.place(network.texts[2] + " unheard", 8)
    assert answer["words"] == answer["known"] + 1
    assert len(answer["nearest"]) == 8
    labels = [link["label"] for link in answer["nearest"]]
    assert labels.count(network.labels[2]) > 4
    x, y = np.array(explorer.map["x"]), np.array(explorer.map["y"])
    apart = np.hypot(x - answer["x"], y - answer["y"])
    same = np.array([label == network.labels[2] for label in network.labels])
    assert apart[same].mean() < apart[~same].mean()


@pytest.mark.parametrize("text", ["", "  ", "qqqq zzzz", "?!"])
def test_a_text_without_a_known_word_is_refused(explorer: Explorer, text: str) -> None:
    with pytest.raises(VHEError, match="none of these words"):
        explorer.place(text, 5)


def test_search_finds_ids_first_and_then_texts(explorer: Explorer, fitted: VHE) -> None:
    assert [v["id"] for v in explorer.search("V12", 5)["vertices"]] == ["v12"]
    network = fitted.network_
    found = explorer.search("  T1W3   common0 ", 3)
    wanted = [k for k, t in enumerate(network.texts) if {"t1w3", "common0"} <= set(t.split())]
    assert sorted(found["numbers"]) == wanted
    assert found["total"] == len(wanted)
    assert len(found["vertices"]) == min(3, len(wanted))
    assert explorer.search("nowhere", 3)["total"] == 0


@pytest.mark.parametrize("number", [-1, 60, 10**30])
def test_a_number_that_is_no_vertex(explorer: Explorer, number: int) -> None:
    with pytest.raises(UnknownVertexError, match="from 0 to 59"):
        explorer.vertex(number)
    with pytest.raises(UnknownVertexError):
        explorer.suggestions(number, 3)
    with pytest.raises(UnknownVertexError):
        explorer.pair(0, number)


def test_any_hashable_is_an_id(network: TextNetwork, hasty: Callable[..., VHE]) -> None:
    odd: list[Hashable] = [7, "7", ("a", 1), "x/y?z#&=%", "\ud800", "", None, 1.5, float("inf")]
    ids = odd + list(network.ids[len(odd) :])
    model = hasty().fit(TextNetwork(ids, network.texts, network.links))
    explorer = Explorer(model, np.zeros((len(ids), 2)))
    assert explorer.find("7")["number"] == 1  # the string, rather than what prints so
    assert explorer.find("('a', 1)")["number"] == 2
    assert explorer.find("x/y?z#&=%")["number"] == 3
    assert [explorer.vertex(k)["id"] for k in range(9)] == [
        *(7, "7", "('a', 1)", "x/y?z#&=%", "\ud800", "", None, 1.5, "inf")
    ]
    assert explorer.suggestions(2, 3)["links"]
    with pytest.raises(UnknownVertexError, match="'b'"):
        explorer.find("b")


def test_pieces_keep_every_letter() -> None:
    assert pieces("", []) == []
    assert pieces("no words", []) == [("no words", 0.0)]
    assert pieces("a b", [("a", 0.5), ("b", 0.5)]) == [("a b", 0.0)]  # none stands out
    twice = pieces("is this is", [("is", 0.0), ("this", 0.0), ("is", 1.0)])
    assert twice == [("is this ", 0.0), ("is", 1.0)]
    assert pieces("ﬁne day", [("fine", 0.9), ("day", 0.1)]) == [("ﬁne day", 0.0)]


def test_labels_are_plain() -> None:
    assert [plain(v) for v in (None, 3, "a", ("b", 2), float("nan"))] == [
        *(None, 3, "a", "('b', 2)", "nan")
    ]

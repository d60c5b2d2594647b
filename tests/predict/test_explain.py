"""An explanation adds up: words to their text's part, text and structure to the score."""

import json
from collections.abc import Callable
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from vhe.data.network import TextNetwork
from vhe.data.text import original_spelling, tokenize
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.predict.explain import Explanation, Side

New = Callable[..., VHE]


@pytest.fixture(scope="module")
def model(new: New) -> VHE:
    """Texts with capitals, punctuation, repeated and rare words, and none at all."""
    rng = np.random.default_rng(0)
    words = ["Cats", "purr", "SOFTLY", "stars", "shine", "bright", "bread", "rises"]
    texts = [", ".join(rng.choice(words[2 * (k % 4) : 2 * (k % 4) + 2], 5)) for k in range(24)]
    texts = [f"{text} -- the {words[k % 8]} once{k}!" for k, text in enumerate(texts)]
    texts[3] = ""
    links = [(k, (k + 4) % 24) for k in range(24)] + [(0, 1)]
    return new(min_count=2).fit(TextNetwork(range(24), texts, np.array(links)))


def test_words_are_those_of_the_text_in_its_spelling(model: VHE) -> None:
    found = model.explain(0, 4)
    assert found.source.id == 0
    assert [word for word, _ in found.source.words] == original_spelling(model.network_.texts[0])
    assert found.source.words[-1] == ("once0", 0.0)  # not in the vocabulary
    assert any(word in ("Cats", "purr") for word, _ in found.target.words)
    for side in (found.source, found.target):
        weights = np.array([weight for _, weight in side.words])
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)
        assert len(side.alignment) == len(weights)
        assert np.sum(side.alignment) == pytest.approx(1)


@pytest.mark.parametrize(
    "text", ["Graph-based VAEs, in 2019: naïve?", "图神经 Net", "½ ﬁre Ⅷ", "e\u0301a İstanbul", ""]
)
def test_words_as_written(text: str) -> None:
    words = original_spelling(text)
    assert [token for word in words for token in tokenize(word)] == tokenize(text)
    assert len(words) == len(tokenize(text))


def test_the_parts_add_up_to_the_score(model: VHE) -> None:
    for a, b in ((0, 4), (4, 0), (1, 2), (5, 5), (3, 7)):
        found = model.explain(a, b)
        assert found.score == pytest.approx(float(model.score([(a, b)])[0]), abs=1e-5)
        assert found.text_score + found.structure_score == pytest.approx(found.score, abs=1e-12)
        assert found.text_share + found.structure_share == 1
        assert 0 <= found.text_share <= 1
        assert found.probability == pytest.approx(float(model.predict_proba([(a, b)])[0]), rel=1e-4)
        sparse = model.predict_proba([(a, b)], balanced=False)[0]
        assert found.network_probability == pytest.approx(float(sparse), rel=1e-4)


def test_swapping_the_ends_swaps_the_sides(model: VHE) -> None:
    one, other = model.explain(0, 5), model.explain(5, 0)
    assert one.text_score == pytest.approx(other.text_score, rel=1e-4)
    for a, b in ((one.source, other.target), (one.target, other.source)):
        assert a.id == b.id
        assert [w for _, w in a.words] == pytest.approx([w for _, w in b.words], abs=1e-4)


def own_code(model: VHE, vertex: int, other: int, words: torch.Tensor) -> torch.Tensor:
    """t of a vertex beside another from its word vectors, as the docstring has it; by hand."""
    net, corpus = model._model, model._corpus
    tokens = [torch.from_numpy(corpus.padded(np.array([v]))) for v in (vertex, other)]
    weights = net.alignment(net.words.weight, [(tokens[0], tokens[1])]).weights[0][0][0]
    read = tokens[0][0].numpy()
    damped = torch.tensor([(1 + np.log((read == t).sum())) / (read == t).sum() for t in read])
    plain = net.words(tokens[0][0]).detach()
    length = (damped.float() @ plain).norm()
    code = damped.float() @ words / length * 16**0.5 - torch.from_numpy(model._residents.center) / 2
    h = model._residents.own_share(vertex) * code
    if net.config.embeds_jointly:
        return h.float()
    integrator, text = net.integrator, weights @ words
    hidden = torch.tanh(integrator.hidden(torch.cat([text, h]).float()))
    return integrator.means(hidden) + integrator.text(text) + integrator.structure(h.float())


def test_the_text_s_part_and_its_words_by_hand(model: VHE) -> None:
    a, b = 0, 4
    z = torch.from_numpy(model.embedding_)
    size = 2 * z[a].norm() * z[b].norm()
    found = model.explain(a, b)
    with torch.no_grad():
        words = {
            v: model._model.words(torch.from_numpy(model._corpus.padded(np.array([v]))[0]))
            for v in (a, b)
        }
        text = own_code(model, a, b, words[a]) @ z[b] + own_code(model, b, a, words[b]) @ z[a]
        assert found.text_score == pytest.approx(float(text / size), rel=1e-3)

        # a word gives what the score loses, in the first order, when its vector is made smaller
        given = []
        for k in range(len(words[a])):
            parts = []
            for scale in (1.01, 0.99):
                changed = words[a].clone()
                changed[k] *= scale
                parts.append(float(own_code(model, a, b, changed) @ z[b]))
            given.append((parts[0] - parts[1]) / 0.02)
    positive = np.maximum(given, 0)
    shares = [weight for _, weight in found.source.words][: len(given)]
    np.testing.assert_allclose(shares, positive / positive.sum(), rtol=0.05, atol=0.01)


def test_two_texts_that_are_no_vertices(model: VHE) -> None:
    found = model.explain_texts("Cats purr, unknown", "the cats")
    assert [word for word, _ in found.source.words] == ["Cats", "purr", "unknown"]
    assert found.source.words[2][1] == 0
    assert found.source.id is None
    mean, _ = model.embed_texts(["Cats purr, unknown", "the cats"])
    cosine = mean[0] @ mean[1] / np.linalg.norm(mean, axis=1).prod()
    assert found.score == pytest.approx(float(cosine), abs=1e-4)


PAPER = {"residual": False, "shared_posterior": False, "link_posterior": "mlp"}


@pytest.mark.parametrize(
    "changes",
    [{"structure": "none"}, {"structure": "learned"}, {"structure": "learned", **PAPER}],
)
def test_other_settings_have_explanations_too(
    changes: dict, hasty: New, network: TextNetwork
) -> None:
    found = hasty(**changes).fit(network).explain("v0", "v5")
    assert sum(weight for _, weight in found.source.words) == pytest.approx(1)
    assert found.text_score + found.structure_score == pytest.approx(found.score, abs=1e-12)


def side(*weights: float) -> Side:
    words = [(f"w{k}", weight) for k, weight in enumerate(weights)]
    return Side("<a>", words, [1 / len(weights)] * len(weights))


def test_phrases_are_runs_of_weighty_words() -> None:
    found = side(0.2, 0.25, 0.0, 0.3, 0.05, 0.2).phrases()
    assert [phrase for phrase, _ in found] == ["w0 w1", "w3", "w5"]
    assert [weight for _, weight in found] == pytest.approx([0.45, 0.3, 0.2])
    assert len(side(0.2, 0.25, 0.0, 0.3, 0.05, 0.2).phrases(most=1)) == 1
    assert Side("a", [], []).phrases() == []
    twice = Side("a", [("x", 0.3), ("of", 0.0), ("x", 0.3), ("y", 0.4)], [0.25] * 4)
    assert twice.phrases() == [("x y", pytest.approx(0.7)), ("x", pytest.approx(0.3))]
    again = Side("a", [("x", 0.5), ("of", 0.0), ("x", 0.5)], [1 / 3] * 3)
    assert again.phrases() == [("x", 1.0)]


def test_as_json_and_as_a_page() -> None:
    told = Explanation(side(1.0, 0.0), Side(2, [("a<b", 1.0)], [1.0]), 0.9, 0.2, 0.8, 0.6, 0.2)
    document = json.loads(json.dumps(told.to_dict()))
    assert document["source"]["words"] == [["w0", 1.0], ["w1", 0.0]]
    assert document["target"]["id"] == 2
    assert document["text_share"] == pytest.approx(0.75)
    page = told.to_html()

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.data: list[str] = []
            self.tags: list[str] = []

        def handle_starttag(self, tag: str, attrs: list) -> None:
            self.tags.append(tag)

        def handle_data(self, data: str) -> None:
            self.data.append(data)

    reader = Reader()
    reader.feed(page)
    assert "a<b" in reader.data
    assert "<a>" in reader.data
    assert reader.tags.count("mark") == 3
    assert not {"script", "link", "img"} & set(reader.tags)  # it stands alone
    assert "http" not in page


def test_unknown_vertices(model: VHE) -> None:
    with pytest.raises(VHEError, match="99"):
        model.explain(0, 99)
    with pytest.raises(VHEError, match="not fitted"):
        VHE().explain(0, 1)

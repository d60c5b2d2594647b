"""Explanations: words in their spelling, shares that sum to 1, JSON and HTML."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from vhe.data.text import original_spelling, tokenize
from vhe.predict.explain import Explanation, Side, make_side

VOCABULARY = frozenset({"cats", "purr", "stars", "shine"})


def shares(side: Side) -> list[float]:
    return [share for _, share in side.words]


def test_the_contributions_of_tokens_become_shares_of_words() -> None:
    text = "Cats, SOFTLY purr; the stars!"
    side = make_side("a", text, VOCABULARY, np.array([0.3, -0.5, 0.1], np.float32))
    assert side.id == "a"
    assert [word for word, _ in side.words] == ["Cats", "SOFTLY", "purr", "the", "stars"]
    assert shares(side) == pytest.approx([0.75, 0, 0, 0, 0.25])
    assert side.alignment is None


def test_words_beyond_the_last_token_that_was_read_have_no_share() -> None:
    side = make_side("a", "cats purr stars shine", VOCABULARY, np.array([1.0, 3.0]))
    assert shares(side) == pytest.approx([0.25, 0.75, 0, 0])


def test_no_word_that_raises_the_score() -> None:
    for contributions in (np.array([-1.0, -2.0]), np.zeros(2)):
        assert shares(make_side("a", "cats purr", VOCABULARY, contributions)) == [0, 0]
    assert make_side("a", "", VOCABULARY, np.zeros(0)).words == []
    assert shares(make_side("a", "unknown words", VOCABULARY, np.zeros(0))) == [0, 0]


def test_the_alignment_has_a_weight_for_each_word() -> None:
    alignment = np.array([0.5, 0.5], np.float32)
    side = make_side(None, "cats of stars", VOCABULARY, np.array([1.0, -1.0]), alignment)
    assert side.alignment == pytest.approx([0.5, 0, 0.5])
    assert shares(side) == [1, 0, 0]
    assert side.to_dict()["alignment"] == side.alignment
    assert "alignment" not in make_side("a", "cats", VOCABULARY, np.ones(1)).to_dict()


@pytest.mark.parametrize(
    "text", ["Graph-based VAEs, in 2019: naïve?", "图神经 Net", "½ ﬁre Ⅷ", "e\u0301a İstanbul", ""]
)
def test_the_original_spelling_has_one_word_per_token(text: str) -> None:
    words = original_spelling(text)
    assert [token for word in words for token in tokenize(word)] == tokenize(text)
    assert len(words) == len(tokenize(text))
    vocabulary = frozenset(tokenize(text))
    side = make_side("a", text, vocabulary, np.ones(len(words)))
    assert [word for word, _ in side.words] == words
    assert sum(shares(side)) == pytest.approx(1 if words else 0)


def some_side(*values: float) -> Side:
    return Side("<a>", [(f"w{k}", value) for k, value in enumerate(values)])


def test_phrases_are_runs_of_words_with_more_than_the_average_share() -> None:
    side = some_side(0.2, 0.25, 0.0, 0.3, 0.05, 0.2)
    assert [phrase for phrase, _ in side.phrases()] == ["w0 w1", "w3", "w5"]
    assert [share for _, share in side.phrases()] == pytest.approx([0.45, 0.3, 0.2])
    assert len(side.phrases(count=1)) == 1
    assert Side("a", []).phrases() == []
    twice = Side("a", [("x", 0.3), ("of", 0.0), ("x", 0.3), ("y", 0.4)])
    assert twice.phrases() == [("x y", pytest.approx(0.7)), ("x", pytest.approx(0.3))]
    again = Side("a", [("x", 0.5), ("of", 0.0), ("x", 0.5)])
    assert again.phrases() == [("x", 1.0)]


def test_phrases_and_pages_have_the_punctuation_of_the_text() -> None:
    text = "Depth-first  search (DFS), see also\nBFS. Graphs? e\u0301"
    words = [(word, 1 / 9) for word in original_spelling(text)]
    side = Side("a", [*words[:4], ("see", 0.0), ("also", 0.0), *words[6:]], text=text)
    assert [phrase for phrase, _ in side.phrases()] == []  # none has more than the average
    side = Side("a", [(word, 4 * share) for word, share in side.words], text=text)
    assert [p for p, _ in side.phrases()] == [
        "Depth-first search (DFS)",
        "BFS",
        "Graphs",
        "e\u0301",
    ]
    assert "".join(piece for piece, _ in side.pieces()) == " ".join(text.split())
    changed = Side("a", [("fine", 0.7), ("day", 0.3)], text="\ufb01ne, day")  # by normalisation
    assert "".join(piece for piece, _ in changed.pieces()) == "fine day"
    page = Explanation(side, side, 0.9, 0.2, 0.5, {"texts": 0.5, "links": 0.0}).to_html()
    assert "</mark>), see also <mark" in page


def explanation(offset: float = 0.0, **parts: float) -> Explanation:
    side, score = some_side(1.0), offset + sum(parts.values())
    return Explanation(side, side, 0.9, 0.2, score, parts)


def test_the_shares_of_text_and_structure() -> None:
    assert explanation(texts=0.6, links=0.2).text_share == pytest.approx(0.75)
    assert explanation(texts=0.6, links=-0.2).structure_share == pytest.approx(0.25)
    nothing = explanation(texts=0.0, links=0.0)
    assert nothing.text_share == nothing.structure_share == 0.5


def test_the_parts_of_texts_and_of_the_structure() -> None:
    found = explanation(-0.7, texts=0.6, links=0.2, words=0.3, degree=-0.5, neighbours=0.4)
    assert found.text_score == pytest.approx(0.9)
    assert found.structure_score == pytest.approx(0.1)
    assert found.offset == pytest.approx(-0.7)
    assert found.score == pytest.approx(found.offset + found.text_score + found.structure_score)
    assert found.text_share + found.structure_share == 1


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.data: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.data.append(data)


def test_an_explanation_as_json_and_as_html() -> None:
    parts = {"texts": 0.5, "links": 0.3, "words": 0.1, "degree": -0.1}
    sides = some_side(1.0, 0.0), Side(2, [("a<b", 1.0)], [1.0])
    found = Explanation(*sides, 0.9, 0.2, 0.3, parts)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["source"] == {"id": "<a>", "words": [["w0", 1.0], ["w1", 0.0]]}
    assert document["target"] == {"id": 2, "words": [["a<b", 1.0]], "alignment": [1.0]}
    assert document["text_share"] == pytest.approx(0.75)
    assert document["parts"] == parts
    assert list(document["parts"]) == list(parts)
    names = ("probability", "balanced_probability", "score", "text_score", "structure_score")
    figures = [document[name] for name in (*names, "offset")]
    assert figures == pytest.approx([0.2, 0.9, 0.3, 0.6, 0.2, -0.5])
    page = found.to_html()
    reader = Reader()
    reader.feed(page)
    assert "a<b" in reader.data
    assert "<a>" in reader.data
    assert any("75 % from the words, 25 % from the links" in part for part in reader.data)
    assert reader.tags.count("mark") == 2  # of words with a share
    assert not {"script", "link", "img"} & set(reader.tags)  # the page is self-contained
    assert "http" not in page

"""Names of the regions of a map."""

from collections import Counter

import numpy as np

from vhe.data.text import Corpus
from vhe.predict.regions import LIFT, class_tfidf, regions


def corpus_of(texts: list[str]) -> Corpus:
    return Corpus.build(texts, min_count=1, max_words=50)


def test_class_tfidf_equals_its_definition() -> None:
    texts = ["fox fox dog", "dog cat", "cat cat bird the", "the the"]
    classes = np.array([0, 0, 1, 1])
    corpus = corpus_of(texts)
    found = class_tfidf(corpus, classes, 2)
    counts = [Counter(), Counter()]
    for text, k in zip(texts, classes, strict=True):
        counts[k].update(text.split())
    mean = sum(map(Counter.total, counts)) / 2
    for k in range(2):
        for j, word in enumerate(corpus.vocabulary):
            share = counts[k][word] / counts[k].total()
            frequency = counts[0][word] + counts[1][word]
            distinguishes = share >= LIFT * frequency / (2 * mean)
            expected = np.sqrt(share) * np.log(1 + mean / frequency) if distinguishes else 0
            assert np.isclose(found[k, j], expected)


def test_regions_are_named_by_words_of_their_own() -> None:
    rng = np.random.default_rng(0)
    topic = np.arange(400) % 4
    texts = [" ".join([f"topic{t}", f"word{rng.integers(5)}", "common"]) for t in topic]
    corners = np.array([[0, 0], [0, 9], [9, 0], [9, 9]])
    coordinates = corners[topic] + rng.normal(scale=0.3, size=(400, 2))
    found = regions(coordinates, corpus_of(texts))
    assert {region.words[0] for region in found} == {f"topic{t}" for t in range(4)}
    assert sum(region.vertices for region in found) == 400
    for region in found:
        corner = corners[int(region.words[0][-1])]
        assert np.hypot(*(np.array([region.x, region.y]) - corner)) < 1


def test_a_name_has_no_word_twice_and_no_common_one() -> None:
    texts = ["the fox foxes fox hunts red", "the dog dogs barks at cat"] * 100
    coordinates = np.array([[0.0, 0.0], [9.0, 9.0]] * 100)
    coordinates += np.random.default_rng(0).normal(scale=0.1, size=coordinates.shape)
    for region in regions(coordinates, corpus_of(texts)):
        assert "the" not in region.words
        assert len({word[:3] for word in region.words}) == 3


def test_frequent_words_come_after_those_of_the_topic() -> None:
    texts = ["for for for fox", "dog cat for bird"] * 100  # "for" passes LIFT in the first region
    classes = np.array([0, 1] * 100)
    corpus = corpus_of(texts)
    weights = dict(zip(corpus.vocabulary, class_tfidf(corpus, classes, 2)[0], strict=True))
    assert weights["for"] > 0
    assert weights["fox"] > weights["for"]


def test_a_map_of_one_point_and_without_words() -> None:
    assert len(regions(np.zeros((3, 2)), corpus_of(["fox", "fox", "fox"]))) == 1
    assert regions(np.zeros((3, 2)), corpus_of(["", "", ""])) == []

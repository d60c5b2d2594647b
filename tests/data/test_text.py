"""Tokenisation of many scripts, and packed tokens against a reference with lists."""

import io
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vhe.data.text as text
from vhe.data.text import PADDING, Corpus, tokenize
from vhe.errors import VHEError


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("", []),
        ("  \t\n ", []),
        ("...!?", []),
        ("Graph-based VAEs, in 2019.", ["graph", "based", "vaes", "in", "2019"]),
        ("don't stop", ["don", "t", "stop"]),
        ("snake_case __init__ _", ["snake", "case", "init"]),
        ("3.14 x2 2x 1,000", ["3", "14", "x2", "2x", "1", "000"]),
        ("naïve ÅNGSTRÖM Žluťoučký", ["naïve", "ångström", "žluťoučký"]),
        ("ΣΟΦΙΑ Привет мир", ["σοφια", "привет", "мир"]),
        ("图神经 net网络", ["图", "神", "经", "net", "网", "络"]),
        ("カナとかな", ["カ", "ナ", "と", "か", "な"]),
        ("한국어 처리", ["한국어", "처리"]),
        ("हिन्दी भाषा। नमस्ते", ["हिन्दी", "भाषा", "नमस्ते"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("مُحَمَّد كتاب", ["مُحَمَّد", "كتاب"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("ภาษาไทย ดี", ["ภาษาไทย", "ดี"]),
        ("hi 😀 👩‍💻 there", ["hi", "there"]),
        ("a – b — c “d” €5", ["a", "b", "c", "d", "5"]),
    ],
)
def test_words_of_many_scripts(sentence, words):
    assert tokenize(sentence) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("e\u0301tude", "étude"),  # decomposed and composed accent
        ("ﬁne", "fine"),
        ("ｆｕｌｌ＿ｗｉｄｔｈ", "full_width"),
        ("ｶﾞﾗｽ", "ガラス"),
        ("x²", "x2"),
        ("각", "각"),  # decomposed Hangul
    ],
)
def test_equivalent_spellings_are_the_same_word(one, other):
    assert tokenize(one) == tokenize(other) != []


@given(st.text())
def test_words_have_no_spaces_or_capitals_and_are_independent_of_context(sentence):
    words = tokenize(sentence)
    assert all(words)
    assert not any(c.isspace() or c == "_" for word in words for c in word)
    assert all(word == word.lower() for word in words)
    assert tokenize(sentence + " ") == tokenize("!" + sentence) == words
    assert tokenize(f"{sentence} plain, {sentence}") == [*words, "plain", *words]


def naive(texts, min_count=2, max_words=300, vocabulary=None):
    """Reference: the words of each text, the vocabulary, and the number of truncated texts."""
    split = [tokenize(t) for t in texts]
    if vocabulary is None:
        counts = Counter(word for words in split for word in words)  # in order of first occurrence
        threshold = min_count if any(c >= min_count for c in counts.values()) else 1
        vocabulary = [word for word, count in counts.items() if count >= threshold]
    known = [[word for word in words if word in vocabulary] for words in split]
    truncated = sum(len(words) > max_words for words in known)
    return [words[:max_words] for words in known], vocabulary, truncated


def unpacked(corpus):
    return [
        [corpus.vocabulary[t - 1] for t in corpus.tokens[a:b]]
        for a, b in zip(corpus.offsets, corpus.offsets[1:], strict=False)
    ]


def assert_equal(corpus, expected):
    words, vocabulary, truncated = expected
    assert unpacked(corpus) == words
    assert list(corpus.vocabulary) == list(vocabulary)
    assert corpus.truncated == truncated
    assert len(corpus) == len(words)
    assert corpus.lengths.tolist() == [len(w) for w in words]
    assert corpus.tokens.dtype == np.int32
    assert corpus.offsets.dtype == np.int64


some_texts = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=9).map(" ".join), max_size=8)


@settings(deadline=None)
@given(some_texts, st.integers(1, 4), st.integers(1, 6))
def test_build_agrees_with_the_reference(texts, min_count, max_words):
    corpus = Corpus.build(texts, min_count=min_count, max_words=max_words)
    assert_equal(corpus, naive(texts, min_count, max_words))


@settings(deadline=None)
@given(
    some_texts,
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(0, 20),
)
def test_block_size_and_memory_mapping_do_not_change_a_corpus(
    texts, min_count, max_words, block, in_memory
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK", block)
        patch.setattr(text, "IN_MEMORY", in_memory)
        corpus = Corpus.build(texts, min_count=min_count, max_words=max_words)
        on_disk = isinstance(corpus.tokens, np.memmap)
        assert on_disk == (len(corpus.tokens) > in_memory)
        assert_equal(corpus, naive(texts, min_count, max_words))
        encoded = Corpus.encode(texts, corpus.vocabulary, max_words=max_words)
    assert np.array_equal(encoded.tokens, corpus.tokens)
    assert np.array_equal(encoded.offsets, corpus.offsets)
    assert (encoded.vocabulary, encoded.truncated) == (corpus.vocabulary, corpus.truncated)


@settings(deadline=None)
@given(some_texts, st.lists(st.sampled_from("cdefgxyz"), unique=True), st.integers(1, 6))
def test_encode_omits_words_outside_the_vocabulary(texts, vocabulary, max_words):
    corpus = Corpus.encode(texts, vocabulary, max_words=max_words)
    assert_equal(corpus, naive(texts, max_words=max_words, vocabulary=vocabulary))


def test_rare_words_are_omitted_unless_all_are_rare():
    assert Corpus.build(["a b", "a c"]).vocabulary == ("a",)
    assert Corpus.build(["a b", "a c"], min_count=1).vocabulary == ("a", "b", "c")
    assert Corpus.build(["a b", "c d"]).vocabulary == ("a", "b", "c", "d")


def test_texts_are_truncated_after_rare_words_are_omitted():
    corpus = Corpus.build(["a rare b a", "b a", "a b b b a"], max_words=3)
    assert unpacked(corpus) == [["a", "b", "a"], ["b", "a"], ["a", "b", "b"]]
    assert corpus.truncated == 1


@pytest.mark.parametrize("texts", [[], [""], ["", "!!", ""]])
def test_texts_without_words(texts):
    corpus = Corpus.build(texts)
    assert len(corpus) == len(texts)
    assert len(corpus.tokens) == 0
    assert corpus.vocabulary == ()
    assert corpus.padded(np.arange(len(texts))).tolist() == [[PADDING]] * len(texts)


def test_a_memory_mapped_corpus_equals_one_in_memory(monkeypatch):
    texts = ["a b c", "", "c c", "b"]
    in_memory = Corpus.build(texts, min_count=1)
    monkeypatch.setattr(text, "IN_MEMORY", 3)
    mapped = Corpus.build(texts, min_count=1)
    assert isinstance(mapped.tokens, np.memmap)
    assert not isinstance(in_memory.tokens, np.memmap)
    rows = np.array([2, 0, 1, 3])
    assert np.array_equal(mapped.padded(rows), in_memory.padded(rows))


def test_no_temporary_files_remain(monkeypatch, tmp_path):
    monkeypatch.setattr(text, "IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    corpus = Corpus.build(["a b", "a b"])
    assert corpus.tokens.tolist() == [1, 2, 1, 2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("encode", "full"),
    [(False, 0), (False, 1), (True, 0)],
    ids=["word indices", "packed tokens", "encoded tokens"],
)
def test_a_full_temporary_folder_is_reported(monkeypatch, encode, full):
    temporary_file, opened = tempfile.TemporaryFile, []

    def open_file(**options):
        if len(opened) == full:
            file = Path("/dev/full").open("w+b", **options)  # noqa: SIM115
        else:
            file = temporary_file(**options)
        opened.append(file)
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", open_file)
    with pytest.raises(VHEError, match=r"temporary folder \(No space left on device\).* TMPDIR"):
        Corpus.encode(["a b"], ["a", "b"]) if encode else Corpus.build(["a b", "a b"])
    assert len(opened) > full
    assert all(file.closed for file in opened)


def test_a_missing_temporary_folder_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(VHEError, match=r"No such file or directory.* TMPDIR"):
        Corpus.build(["a b"])


def test_a_partial_write_is_continued(monkeypatch):
    class Slow(io.BytesIO):
        def write(self, data):
            return super().write(bytes(data)[:3])

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: Slow())
    assert Corpus.encode(["a b c", "b"], ["a", "b", "c"]).tokens.tolist() == [1, 2, 3, 2]


def test_progress_is_reported(monkeypatch):
    monkeypatch.setattr(text, "REPORT_EVERY", 2)
    reports = []
    Corpus.build(["a"] * 5, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(2, 5), (4, 5), (5, 5)]


@given(some_texts.filter(bool), st.data())
def test_padded_tokens(texts, data):
    corpus = Corpus.build(texts, min_count=1)
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=6))
    found = corpus.padded(np.array(rows, dtype=np.int64))
    own = [corpus.tokens[corpus.offsets[r] : corpus.offsets[r + 1]].tolist() for r in rows]
    width = max([1, *map(len, own)])
    assert found.shape == (len(rows), width)
    assert found.dtype == np.int64
    assert found.tolist() == [tokens + [PADDING] * (width - len(tokens)) for tokens in own]


def test_padding_is_not_a_token():
    corpus = Corpus.build(["a b", "b"], min_count=1)
    assert corpus.tokens.min() == PADDING + 1
    assert corpus.padded(np.array([0, 1])).tolist() == [[1, 2], [2, PADDING]]

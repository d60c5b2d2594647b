"""What the Python interface accepts: one id or several, lists, arrays and tables; clear errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vhe
from vhe.data.network import TextNetwork
from vhe.errors import VHEError, similar
from vhe.estimators import VHE, PairVHE
from vhe.predict.candidates import DUPLICATE, duplicate_texts, text_cosines


@pytest.fixture(params=["graph", "pair"])
def model(request: pytest.FixtureRequest, fitted: VHE, fitted_pair: PairVHE) -> VHE | PairVHE:
    return fitted if request.param == "graph" else fitted_pair


def test_embed_takes_one_id_or_several(model: VHE | PairVHE) -> None:
    everything = model.embed()
    np.testing.assert_array_equal(model.embed("v3"), everything[3])
    np.testing.assert_array_equal(model.embed(["v3"]), everything[[3]])
    for several in (("v3", "v5"), np.array(["v3", "v5"]), pd.Series(["v3", "v5"])):
        np.testing.assert_array_equal(model.embed(several), everything[[3, 5]])
    mean, std = model.embed("v3", return_std=True)
    np.testing.assert_array_equal(mean, everything[3])
    np.testing.assert_array_equal(std, model.embedding_std_[3])
    mean += 1  # a copy
    np.testing.assert_array_equal(model.embed("v3"), everything[3])
    with pytest.raises(VHEError, match="no vertex 'V99'"):
        model.embed("V99")


def test_pair_models_embed_one_id_in_contexts(fitted_pair: PairVHE) -> None:
    one, all_of_them = fitted_pair.embed("v3", contexts=2), fitted_pair.embed(contexts=2)
    np.testing.assert_array_equal(one, all_of_them[3])


def test_a_name_without_its_folder_suggests_the_page() -> None:
    network = TextNetwork(["notes/Red fox", "animals/hare/index", "x"], ["a", "b", "c"], [[0, 1]])
    for name, page in (("red fox", "notes/Red fox"), ("hare", "animals/hare/index")):
        with pytest.raises(VHEError, match=f"did you mean '{page}'"):
            network.index(name)


def test_a_tuple_may_be_an_id(hasty: Callable[..., VHE], network: TextNetwork) -> None:
    ids = [("vertex", k) for k in range(len(network))]
    model = hasty().fit(TextNetwork(ids, network.texts, network.edges))
    assert model.embed(("vertex", 3)).ndim == 1
    assert model.embed([("vertex", 3)]).ndim == 2


@pytest.mark.parametrize(
    "convert",
    [
        list,
        iter,
        np.array,
        lambda pairs: pd.DataFrame(pairs, columns=["source", "target"]),
        lambda pairs: pd.DataFrame(pairs, columns=["Citing", "cited_id"]),
        lambda pairs: pd.DataFrame([("x", *p) for p in pairs], columns=["n", "source", "target"]),
    ],
)
def test_pairs_as_lists_arrays_and_tables(convert: Callable[[Any], Any], fitted: VHE) -> None:
    pairs = [("v1", "v2"), ("v3", "v8")]
    np.testing.assert_array_equal(fitted.score(convert(pairs)), fitted.score(pairs))
    np.testing.assert_array_equal(fitted.predict_proba(convert(pairs)), fitted.predict_proba(pairs))
    future = [("v1", "v2"), ("v3", "v9")]
    assert vhe.evaluate(fitted, convert(future)) == vhe.evaluate(fitted, future)


@pytest.mark.parametrize(
    "wrong", ["ab", 5, None, ["ab", "cd"], [("a", "b", "c")], ["a", "b"], np.arange(4)]
)
def test_pairs_of_another_type_are_refused(wrong: Any, fitted: VHE) -> None:
    for ask in (fitted.score, fitted.predict_proba, lambda pairs: vhe.evaluate(fitted, pairs)):
        with pytest.raises(TypeError, match="pairs must be a list, array or table of pairs of ids"):
            ask(wrong)


def test_a_table_of_pairs_needs_its_columns(fitted: VHE) -> None:
    with pytest.raises(VHEError, match="no column 'target': rename one of 'source', 'other'"):
        fitted.score(pd.DataFrame({"source": ["v1"], "other": ["v2"]}))
    with pytest.raises(TypeError, match="evaluate takes a fitted model and links, not a str"):
        vhe.evaluate("model", [("v1", "v2")])  # type: ignore[arg-type]
    with pytest.raises(VHEError, match="VHE has no network_ with the ids of the links: fit it"):
        vhe.evaluate(VHE(), [("v1", "v2")])


def test_new_vertices_as_dicts_lists_and_tables(
    hasty: Callable[..., VHE], network: TextNetwork
) -> None:
    texts = {"n1": "t1w1 t1w2 common1", "n2": "t2w1 common0"}
    links = [("n1", "v1")]
    table = pd.DataFrame({"Key": [*texts], "text": [*texts.values()], "label": ["topic 1", np.nan]})
    edges = pd.DataFrame(links, columns=["source", "target"])
    grown = [hasty().fit(network).add_vertices(given, links) for given in (texts, [*texts.items()])]
    grown.append(hasty().fit(network).add_vertices(table, edges))
    for model in grown:
        assert model.network_.ids[-2:] == ("n1", "n2")
        assert len(model.network_.links) == len(network.links) + 1
        np.testing.assert_array_equal(model.embedding_, grown[0].embedding_)
    assert [model.network_.labels[-2:] for model in grown] == [
        (None, None),
        (None, None),
        ("topic 1", None),
    ]
    given = hasty().fit(network).add_vertices(table, labels={"n2": "topic 2"})
    assert given.network_.labels[-2:] == (None, "topic 2")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a text", "texts must be a dict of ids and texts"),
        (["ab", "cd"], "texts must be a dict of ids and texts"),
        (7, "texts must be a dict of ids and texts"),
        ([("n", "a", "b")], "texts must be a dict of ids and texts"),
        ([("n", "a"), ("n", "b")], "duplicate id 'n'"),
        ([(["n"], "a")], "not hashable"),
        ({"v1": "a"}, "duplicate id 'v1'"),
        ({"n": 5}, "the text of vertex 'n' is of type int"),
        (pd.DataFrame({"id": ["n"], "words": ["a"]}), "no column 'text'"),
        (pd.DataFrame({"id": ["n"], "text": [np.nan]}), "the text of vertex 'n' is of type float"),
    ],
)
def test_new_vertices_of_another_type_are_refused(texts: Any, message: str, fitted: VHE) -> None:
    before = fitted.network_
    with pytest.raises(VHEError, match=message):
        fitted.add_vertices(texts)
    assert fitted.network_ is before


def test_a_label_of_no_new_vertex_is_refused(fitted: VHE) -> None:
    before = fitted.network_
    with pytest.raises(VHEError, match="labels: 'm' is not one of the new vertices"):
        fitted.add_vertices({"n": "a"}, labels={"m": "topic 1"})
    assert fitted.network_ is before


def test_fit_transform(hasty: Callable[..., VHE], network: TextNetwork) -> None:
    model = hasty()
    np.testing.assert_array_equal(model.fit_transform(network), hasty().fit(network).embedding_)
    assert model.network_ is network
    with pytest.raises(VHEError, match=r"takes a TextNetwork, not a str.*vhe\.load"):
        model.fit("cora")  # type: ignore[arg-type]


def test_notes_of_the_reader_are_saved(
    hasty: Callable[..., VHE], network: TextNetwork, tmp_path: Any
) -> None:
    noted = network.with_edges(network.edges, notes=["3 edges ignored"])
    hasty().fit(noted).save(tmp_path / "m")
    assert vhe.load_model(tmp_path / "m").result_["notes"] == ["3 edges ignored"]


def test_duplicate_texts_are_marked_or_left_out(
    hasty: Callable[..., VHE], network: TextNetwork
) -> None:
    texts = list(network.texts)
    texts[50], texts[51] = texts[0], texts[1] + " common0"
    model = hasty().fit(TextNetwork(network.ids, texts, network.edges))
    words = model._rows.words
    everything = np.array([(i, j) for i in range(60) for j in range(i + 1, 60)])
    cosines = text_cosines(words, everything)
    np.testing.assert_allclose(
        cosines, (words @ words.T).toarray()[everything[:, 0], everything[:, 1]], atol=1e-6
    )
    alike = everything[cosines >= DUPLICATE]
    assert duplicate_texts(words).tolist() == alike.tolist()
    assert [0, 50] in alike.tolist()

    table = model.suggest_all(k=2000)
    assert len(table) == 60 * 59 / 2 - len(model.network_.links)
    pairs = np.sort([model.network_.indices(table[end]) for end in ("source", "target")], axis=0).T
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (np.diff(table["probability"]) <= 0).all()
    expected = table.loc[~table["duplicate"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(model.suggest_all(k=2000, duplicates=False), expected)
    unlinked = {tuple(p) for p in alike.tolist()} - {
        tuple(p) for p in model.network_.links.tolist()
    }
    assert {tuple(p) for p in pairs[table["duplicate"]].tolist()} == unlinked
    few = model.suggest_all(k=7)
    pd.testing.assert_frame_equal(few, table.head(7))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("LATENT_DIM", "latent_dim"),
        ("latent_dims", "latent_dim"),
        ("latendim", "latent_dim"),
        ("Kernels", "Kernels"),
        ("dropout", None),
        ("", None),
    ],
)
def test_similar_words_ignore_case(word: str, expected: str | None) -> None:
    assert similar(word, ["latent_dim", "Kernels", "max_words"]) == expected


def test_unknown_names_suggest_only_what_is_similar(fitted: VHE) -> None:
    with pytest.raises(VHEError, match="did you mean latent_dim"):
        vhe.VHEConfig.from_dict({"Latent_Dim": 3})
    with pytest.raises(VHEError, match="known settings"):
        vhe.VHEConfig.from_dict({"dropout": 0.1})
    with pytest.raises(VHEError, match="did you mean 'v12'"):
        fitted.suggest_links("V12")
    with pytest.raises(VHEError) as error:
        fitted.suggest_links("some/other/page")
    assert "did you mean" not in str(error.value)

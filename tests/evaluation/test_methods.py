"""Methods by name: what is offered can be made, what is missing is not offered."""

import sys

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation import methods
from vhe.evaluation.methods import make, names


@pytest.mark.parametrize("name", names())
def test_every_method_on_offer_can_be_made(name: str) -> None:
    method = make(name, 3)
    for part in ("fit", "score_indices", "score_matrix"):
        assert callable(getattr(method, part))
    taught = getattr(method, "contextual", method)  # what a text-only form is made of
    assert name == "tfidf" or taught.random_state == 3
    assert not getattr(method, "verbose", False)


def test_vhe_comes_with_its_own_settings_or_the_papers() -> None:
    from vhe.config import VHEConfig

    assert make("vhe", 0).config == VHEConfig()
    assert make("vhe-paper", 0).config == VHEConfig.paper()
    pairs = make("vhe-pairs", 0, steps=3).config
    assert (pairs.structure, pairs.link_weight, pairs.steps) == ("learned", 0, 3)


def test_settings_reach_the_method(network: TextNetwork) -> None:
    wide, narrow = make("diffused-text", 1), make("diffused-text", 1, dimensions=2)
    assert narrow.fit(network).embedding_.shape == (len(network), 2)
    assert wide.fit(network).embedding_.shape[1] > 2
    assert np.isfinite(narrow.embedding_).all()


def test_a_method_whose_module_is_missing_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        methods, "METHODS", {**methods.METHODS, "lost": "vhe.baselines.lost_module:Lost"}
    )
    assert "lost" not in names()
    assert {"vhe", "tfidf", "diffused-text"} <= set(names())
    with pytest.raises(VHEError, match="no method named 'lost'"):
        make("lost", 0)


def test_an_unknown_name_gets_close_matches() -> None:
    with pytest.raises(VHEError, match=r"did you mean .*tfidf") as error:
        make("TF-IDF", 0)
    assert "\n" not in str(error.value)
    with pytest.raises(VHEError, match="there are vhe, "):
        make("qqqq", 0)


def test_listing_imports_no_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "vhe.baselines.diffused_text", raising=False)
    assert "diffused-text" in names()
    assert "vhe.baselines.diffused_text" not in sys.modules

"""The registry of methods: every listed method can be made."""

import sys

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation.methods import make, names


@pytest.mark.parametrize("name", names())
def test_every_listed_method_can_be_made(name: str) -> None:
    method = make(name, 3)
    for part in ("fit", "score_indices", "score_matrix"):
        assert callable(getattr(method, part))
    seeded = getattr(method, "contextual", method)  # the baseline inside a text-only form
    assert name in ("tfidf", "sentences", "adamic-adar", "katz") or seeded.random_state == 3
    assert not getattr(method, "verbose", False)


def test_both_models_have_their_default_or_the_papers_settings() -> None:
    from vhe.config import PairVHEConfig, VHEConfig

    assert make("vhe", 0).config == VHEConfig()
    assert make("pair-vhe", 0).config == PairVHEConfig()
    assert make("pair-vhe-paper", 0).config == PairVHEConfig.paper()
    changed = make("pair-vhe-paper", 0, steps=3)
    assert changed.config == PairVHEConfig.paper().replace(steps=3)
    assert not changed.verbose


def test_settings_reach_the_method(network: TextNetwork) -> None:
    wide, narrow = make("diffused-text", 1), make("diffused-text", 1, dimensions=2)
    assert narrow.fit(network).embedding_.shape == (len(network), 2)
    assert wide.fit(network).embedding_.shape[1] > 2
    assert np.isfinite(narrow.embedding_).all()


def test_an_unknown_name_gets_close_matches() -> None:
    with pytest.raises(VHEError, match=r"did you mean .*tfidf") as error:
        make("TF-IDF", 0)
    assert "\n" not in str(error.value)
    with pytest.raises(VHEError, match="known: vhe, "):
        make("qqqq", 0)
    with pytest.raises(VHEError, match="did you mean deepwalk"):
        make("DEEPWLAK", 0)
    with pytest.raises(VHEError, match="known: vhe, "):  # pwa is another method
        make("pca", 0)


def test_listing_imports_no_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "vhe.baselines.diffused_text", raising=False)
    assert "diffused-text" in names()
    assert "vhe.baselines.diffused_text" not in sys.modules

"""A model that any released version saved can be loaded, and says what it said then.

After a release: python tests/torture/test_old_formats.py keeps a model of the version at hand.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import vhe
from vhe.estimators import VHE

FIXTURES = Path(__file__).parent / "fixtures"
PAIRS = [("v0", "v1"), ("v0", "v5"), ("v7", "v3")]


@pytest.mark.parametrize("version", sorted(path.name for path in FIXTURES.iterdir()))
def test_a_model_of_a_released_version(version: str) -> None:
    folder = FIXTURES / version
    wanted = json.loads((folder / "expected.json").read_text())
    model = VHE.load(folder / "model")
    assert model.result_["versions"]["vhe"] == version
    np.testing.assert_allclose(model.predict_proba(PAIRS), wanted["probabilities"], atol=1e-6)
    np.testing.assert_allclose(model.embed(["v0"])[0], wanted["embedding"], atol=1e-6)
    assert [s.id for s in model.suggest_links("v0", k=3)] == wanted["suggestions"]
    assert np.isfinite(model.embed(contexts="all")).all()


def test_this_version_is_kept() -> None:
    assert (FIXTURES / vhe.__version__).is_dir(), "python tests/torture/test_old_formats.py"


def keep(folder: Path) -> None:
    """Fit a very small model and save it with what it says."""
    texts = [f"t{k % 2}w{k % 5} t{k % 2}w{k % 3} common" for k in range(10)]
    edges = [(k, (k + 2) % 10) for k in range(10)] + [(0, 4), (1, 5)]
    labels = [f"topic {k % 2}" for k in range(10)]
    network = vhe.TextNetwork([f"v{k}" for k in range(10)], texts, edges, labels, name="tiny")
    sizes = {"word_dim": 4, "latent_dim": 4, "structure_dim": 4, "hidden_dim": 4, "kernels": 2}
    small = {"max_words": 8, "min_count": 1, "steps": 8, "contexts": 2, "batch_size": 8}
    model = VHE(random_state=0, threads=1, verbose=False, **sizes, **small).fit(network)
    model.save(folder / "model")
    expected = {
        "probabilities": model.predict_proba(PAIRS).tolist(),
        "embedding": model.embed(["v0"])[0].tolist(),
        "suggestions": [s.id for s in model.suggest_links("v0", k=3)],
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(keep(FIXTURES / vhe.__version__))

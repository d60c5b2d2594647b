"""The See Also network: size, names, and texts without the references that are edges."""

import sys

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers import seealso

DOCUMENT = """\
fit(x, y)

Fit a line to points.

Parameters
----------
x : array

See Also
--------
numpy.polyfit : Least squares
    with polyfit, trap
:func:`~scipy.stats.linregress`, `curve_fit`
np.linalg.lstsq: solve
some words that are not a name

Notes
-----
A line is straight.

>>> fit([1], [2])
3

References
----------
.. [1] Gauss
"""


@pytest.fixture(scope="module")
def network() -> TextNetwork:
    return TextNetwork.from_parts(seealso.read_seealso())


def test_text_is_the_docstring_without_references() -> None:
    text = " ".join(seealso._prose(DOCUMENT).split())
    assert text == "Fit a line to points. x : array A line is straight."


def test_references_in_all_notations_are_found() -> None:
    assert list(seealso._references(DOCUMENT)) == [
        "numpy.polyfit",
        "scipy.stats.linregress",
        "curve_fit",
        "np.linalg.lstsq",
    ]


def test_size(network: TextNetwork) -> None:
    assert 4_000 < len(network) < 5_500
    assert 4_000 < len(network.links) < 5_500
    assert 2_400 < (network.degrees > 0).sum() < 3_200
    assert len(set(network.labels or ())) > 50
    assert max(len(text.split()) for text in network.texts) == 60
    assert all(network.texts)


def test_names_and_labels_are_public(network: TextNetwork) -> None:
    labels = dict(zip(network.ids, network.labels or (), strict=True))
    assert labels["scipy.signal.lfilter"] == "scipy.signal"
    assert labels["networkx.pagerank"] == "networkx.algorithms.link_analysis"
    assert labels["sklearn.linear_model.LassoCV"] == "sklearn.linear_model"
    assert labels["numpy.vstack"] == "numpy"
    assert labels["pandas.DataFrame"] == "pandas"
    assert not [i for i in network.ids if "._" in i or ".tests." in i]
    assert network.ids == tuple(sorted(network.ids))


def test_a_known_reference_is_an_edge(network: TextNetwork) -> None:
    links = set(map(tuple, network.links.tolist()))
    for pair in (
        ("numpy.hamming", "numpy.bartlett"),
        ("scipy.signal.lfilter", "scipy.signal.lfilter_zi"),
        ("sklearn.decomposition.PCA", "sklearn.decomposition.TruncatedSVD"),
    ):
        assert tuple(sorted(network.indices(pair).tolist())) in links
    assert network.loops == 0


def test_reading_is_deterministic_and_prints_nothing(
    network: TextNetwork, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    again = TextNetwork.from_parts(seealso.read_seealso())
    assert again.ids == network.ids
    assert again.texts == network.texts
    assert np.array_equal(again.edges, network.edges)
    assert capfd.readouterr() == ("", "")
    assert len(recwarn) == 0


def test_a_missing_package_is_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seealso, "PACKAGES", ("networkx", "no_such_package"))
    network = seealso.read_seealso(words=5)
    assert {str(i).partition(".")[0] for i in network.ids} == {"networkx"}
    assert max(len(text.split()) for text in network.texts) == 5
    assert "no_such_package" not in sys.modules

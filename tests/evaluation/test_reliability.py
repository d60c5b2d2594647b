"""Reliability diagrams: reproducible pictures, unknown formats are refused."""

import numpy as np
import pytest

from vhe.errors import VHEError
from vhe.evaluation.reliability import reliability_plot
from vhe.predict.calibration import reliability_curve


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_reliability_diagram_has_reproducible_bytes(tmp_path, kind):
    pytest.importorskip("matplotlib")
    curve = reliability_curve(np.array([0.05, 0.15, 0.95]), np.array([0, 1, 1]))
    first = reliability_plot({"vhe": curve}, tmp_path / f"a.{kind}").read_bytes()
    assert first.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    assert first == reliability_plot({"vhe": curve}, tmp_path / f"b.{kind}").read_bytes()
    if kind == "svg":
        for label in ("predicted probability", "observed frequency", "calibration error 31.7 %"):
            assert label in first.decode()
    with pytest.raises(VHEError, match=r"a\.txt: unknown picture format"):
        reliability_plot({"vhe": curve}, tmp_path / "a.txt")

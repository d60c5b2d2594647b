"""Benchmarks compare equal work and give figures; no figure is asserted."""

import json
import sys

import numpy as np
import pytest
import torch

from vhe.bench import alignment, fit, measure, scale, startup
from vhe.cli import main
from vhe.errors import VHEError
from vhe.runtime import native

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_straightforward_implementation_has_the_same_elbo_and_gradients():
    both = alignment.Comparison(measure.synthetic(60))
    elbo, gradients = both.difference()
    assert elbo < 1e-4
    assert gradients < 1e-4
    assert both.plain.alignment.kernels.grad.abs().max() > 0
    torch.testing.assert_close(
        both.model.words.weight.grad, both.plain.words.weight.grad, rtol=1e-3, atol=1e-6
    )


def test_synthetic_networks_differ_in_size_only():
    few, many = measure.synthetic(300), measure.synthetic(1200)
    words = [np.mean([len(text.split()) for text in n.texts]) for n in (few, many)]
    assert words == [measure.LENGTH, measure.LENGTH]
    links = [len(n.links) / len(n) for n in (few, many)]
    assert links[0] == pytest.approx(links[1], rel=0.1)


def test_programs_are_interleaved_and_the_first_call_of_a_turn_is_not_counted(monkeypatch):
    clock, called = [0.0], []
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])

    def program(name, seconds):
        def run():
            clock[0] += seconds if called and called[-1] == name else 100
            called.append(name)

        return run

    programs = {"a": program("a", 2), "b": program("b", 3)}
    assert measure.interleaved(programs, 2, calls=3) == {"a": 2, "b": 3}
    assert called == ["a", "a", "a", "b", "b", "b"] * 2
    assert measure.interleaved({"a": program("a", 2)}, 3, calls=1) == {"a": 2}


def test_scale():
    figures = scale.scale(1, small=100, large=200)
    assert figures["ratio"] > 0
    assert figures["peak GB"] > 0


def test_memory_is_unknown_where_python_has_no_module_for_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert np.isnan(measure.peak_gigabytes())


def test_startup():
    figures = startup.startup(1, vertices=50)
    assert figures["suggest over import numpy"] > 0
    commands = ("suggest", "score", "explain", "embed")
    names = [f"seconds, {name}" for name in ("import numpy", *commands)]
    assert list(figures)[:6] == ["vertices", *names]
    assert figures["vertices"] == 50
    assert all(0 < figures[f"GB, {name}"] < 1 for name in commands if sys.platform == "linux")


def test_a_command_that_fails_is_reported():
    with pytest.raises(VHEError, match="ZeroDivisionError"):
        startup._program(["-c", "1 / 0"])()


def test_fit_measures_both_paths(monkeypatch):
    used = []
    monkeypatch.setattr(fit.VHE, "fit", lambda self, network: used.append(native.level()))
    monkeypatch.setattr(fit.PairVHE, "fit", lambda self, network: used.append(native.level()))
    if native.level() == "torch":
        with pytest.raises(VHEError, match="C compiler"):
            fit.fit(measure.synthetic(20), 1)
        return
    figures = fit.fit(measure.synthetic(20), 1)
    assert list(figures)[-2:] == ["VHE, torch over native", "PairVHE, torch over native"]
    assert used == [native.level(), "torch"] * 2


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr("vhe.data.datasets.load", lambda name: measure.synthetic(60))
    assert main(["bench", "step", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["step seealso"]
    assert 0 < found["share of data loading"] < 1
    assert main(["bench", "nonsense"]) == 2

"""What is compared does the same work, and the figures come out of it; no figure is asserted."""

import json

import numpy as np
import pytest
import torch

from vhe.bench import alignment, measure, scale
from vhe.cli import main

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_straightforward_way_gives_the_same_losses_and_gradients():
    both = alignment.Comparison(measure.made_up(60))
    losses, gradients = both.apart()
    assert losses < 1e-4
    assert gradients < 1e-4
    assert both.plain.alignment.kernels.grad.abs().max() > 0
    torch.testing.assert_close(
        both.model.words.weight.grad, both.plain.words.weight.grad, rtol=1e-3, atol=1e-6
    )


def test_made_up_networks_differ_in_size_only():
    few, many = measure.made_up(300), measure.made_up(1200)
    words = [np.mean([len(text.split()) for text in n.texts]) for n in (few, many)]
    assert words == [measure.LENGTH, measure.LENGTH]
    links = [len(n.links) / len(n) for n in (few, many)]
    assert links[0] == pytest.approx(links[1], rel=0.1)


def test_programs_take_turns_whose_first_call_does_not_count(monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])

    def program(name, seconds):
        def run():
            clock[0] += seconds if said and said[-1] == name else 100
            said.append(name)

        return run

    programs = {"a": program("a", 2), "b": program("b", 3)}
    assert measure.in_turns(programs, 2, calls=3) == {"a": 2, "b": 3}
    assert said == ["a", "a", "a", "b", "b", "b"] * 2


def test_figures_of_scale(monkeypatch):
    figures = scale.scale(1, small=100, large=200)
    assert figures["ratio"] > 0
    assert figures["peak GB"] > 0


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr("vhe.data.datasets.load", lambda name: measure.made_up(60))
    assert main(["bench", "step", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["step seealso"]
    assert 0 < found["loader's share of a step"] < 1
    assert main(["bench", "nonsense"]) == 2

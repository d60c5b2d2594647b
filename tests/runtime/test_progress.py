"""Progress is a bar where one can be drawn, and plain lines elsewhere, in notebooks too."""

import builtins
import importlib.util
import sys
import types
import warnings

import pytest

from vhe.runtime.progress import Progress


class ZMQInteractiveShell:
    """What IPython calls itself in a notebook."""


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)


def work() -> None:
    with Progress("training", 3) as progress:
        for done in (1, 2, 3):
            progress.update(done, "AUC 90.0")


def test_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr() == ("", "training 3/3 · AUC 90.0 · 0 s\n")


@pytest.mark.usefixtures("notebook")
def test_a_notebook_that_cannot_draw_gets_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ipywidgets" else find(name)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rich would warn once a refresh
        work()
    assert capsys.readouterr() == ("", "training 3/3 · AUC 90.0 · 0 s\n")


@pytest.mark.usefixtures("notebook")
def test_a_notebook_that_can_draw_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    bar = types.SimpleNamespace(
        start=lambda: drawn.append("start"),
        stop=lambda: drawn.append("stop"),
        add_task=lambda *what, **more: 0,
        update=lambda *what, **more: drawn.append("update"),
    )
    monkeypatch.setattr("rich.progress.Progress", lambda *columns, **more: bar)
    work()
    assert drawn == ["start", "update", "update", "update", "stop"]


def test_a_kernel_that_is_only_imported_is_no_notebook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    work()
    assert "training 3/3" in capsys.readouterr().err

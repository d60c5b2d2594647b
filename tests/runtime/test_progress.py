"""Progress: a bar on terminals and in notebooks, plain lines elsewhere, log records if hidden."""

import builtins
import importlib.util
import logging
import re
import sys
import time
import types
import warnings

import pytest
from tests.waiting import until

from vhe.runtime import progress as module
from vhe.runtime.progress import Progress


class ZMQInteractiveShell:
    """The class name of IPython in a notebook."""


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)


def work() -> None:
    with Progress("training", 3) as progress:
        for done in (1, 2, 3):
            progress.update(done, "AUC 90.0")


def test_plain_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr() == ("", "training 3/3 · AUC 90.0 · 0 s\n")


@pytest.mark.usefixtures("notebook")
def test_plain_lines_in_a_notebook_without_ipywidgets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ipywidgets" else find(name)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rich would warn at each refresh
        work()
    assert capsys.readouterr() == ("", "training 3/3 · AUC 90.0 · 0 s\n")


@pytest.mark.usefixtures("notebook")
def test_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_imported_kernel_is_not_a_notebook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    work()
    assert "training 3/3" in capsys.readouterr().err


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_LINE_SECONDS", 0.05)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.1)


@pytest.mark.usefixtures("fast")
def test_a_phase_that_does_not_report_is_not_silent(capsys: pytest.CaptureFixture[str]) -> None:
    printed = ""

    def lines() -> list[str]:
        nonlocal printed
        printed += capsys.readouterr().err
        return printed.splitlines()

    with Progress("LSA"):
        until(lambda: len(lines()) >= 2, seconds=10)  # after 0.05 s, then every 0.1 s
    assert len(lines()) >= 3  # one at the end
    assert all(re.fullmatch(r"LSA · \d+ s", line) for line in lines())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_lines_have_percentage_and_remaining_time(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    with Progress("training", 1000) as progress:
        progress.update(0)
        assert progress._line() == "training 0/1,000 (0 %) · 0 s"
        clock[0] = 10.0
        progress.update(250, "AUC 90.0")
        assert progress._line() == "training 250/1,000 (25 %) · AUC 90.0 · 10 s, 30 s left"
        clock[0] = 300.0
        progress.update(1000)
    assert capsys.readouterr().err == "training 1,000/1,000 · AUC 90.0 · 5 min\n"


def test_the_remaining_time_of_a_resumed_phase_counts_new_steps_only(clock: list[float]) -> None:
    with Progress("training", 1000, show=False) as progress:
        progress.update(900)
        clock[0] = 10.0
        progress.update(910)
        assert progress._line() == "training 910/1,000 (91 %) · 10 s, 90 s left"


def test_a_brief_phase_without_a_note_prints_nothing(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    with Progress("vocabulary") as progress:
        progress.report(5, 5)
        assert progress._line() == "vocabulary 5/5 · 0 s"
    assert capsys.readouterr() == ("", "")


def test_a_failed_phase_prints_no_last_line(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    def fail() -> None:
        with Progress("training", 3) as progress:
            progress.update(1, "AUC 90.0")
            clock[0] = 10.0
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("fast")
def test_a_hidden_phase_is_logged(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("LSA", show=False):
        time.sleep(0.1)
    assert caplog.records == []
    with caplog.at_level(logging.INFO, logger="vhe"), Progress("LSA", show=False):
        until(lambda: caplog.records, seconds=10)
    assert caplog.records
    assert all(re.fullmatch(r"LSA · \d+ s", record.getMessage()) for record in caplog.records)
    assert capsys.readouterr() == ("", "")


def test_control_characters_are_shown_as_symbols(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("reading \x1b[2J[bold]x", 1) as progress:
        progress.update(1, "from\na\x07 file")
    assert capsys.readouterr().err == "reading ␛[2J[bold]x 1/1 · from a␇ file · 0 s\n"

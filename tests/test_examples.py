"""Every example is short, runs unchanged and prints its result."""

import json
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

import vhe

EXAMPLES = Path(__file__).parent.parent / "examples"
OUTPUT = {  # pattern of what each prints
    "data_scientist": r"embedding: accuracy 0\.[6-9](.*\n)*^[1-9]\d* edges added",
    "librarian": r"hidden references: AUC 0\.[89](.*\n)*^new  ->  scipy\.stats\.ttest_ind$",
    "note_taker": r"^- \[ \] \[\[\w+\]\] - \[\[\w+\]\] \(.+\)$(.*\n)*^related: ",
    "researcher": r"^tfidf .*\n(.*\n)*^vhe +0\.\d+ ± 0\.\d+",
    "service_developer": r"day 2: [1-5] of 5 have a true link",
}


@pytest.fixture(scope="module")
def quick() -> Iterator[pytest.MonkeyPatch]:
    """Read See Also once for all examples, and use one thread: the tensors are tiny."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vhe, "load", cache(vhe.load))
        yield patch
    torch.set_num_threads(threads)


def test_every_example_is_run_and_listed() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert files == set(OUTPUT)
    assert files == set(re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text()))


@pytest.mark.parametrize("name", sorted(OUTPUT))
def test_an_example_runs(
    name: str, quick: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = EXAMPLES / f"{name}.py"
    assert len(program.read_text().splitlines()) < 100
    runpy.run_path(str(program), run_name="__main__")
    assert re.search(OUTPUT[name], capsys.readouterr().out, re.MULTILINE)


def test_the_tour_runs_and_shows_its_outputs(quick: pytest.MonkeyPatch) -> None:
    """The cells run on a part of the network; the notebook has the outputs of a whole run."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in code)
    assert all(out["output_type"] != "error" for cell in code for out in cell["outputs"])
    whole = vhe.load("seealso")
    part = whole.subnetwork([i for i, n in enumerate(whole.ids) if n.startswith("scipy.s")])
    quick.setattr(vhe, "load", lambda name: part)
    exec("\n".join("".join(cell["source"]) for cell in code), {"__name__": "__main__"})

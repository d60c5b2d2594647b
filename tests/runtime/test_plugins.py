"""Extension points: the example package, installed; objects named on the command line; errors."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import vhe
from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation.methods import make, names
from vhe.runtime import plugins

EXTENSION = Path(__file__).parents[2] / "examples" / "extension"
OUTLINE = """<opml version="2.0"><body>
<outline text="animals"><outline text="red fox" _note="hunts"/><outline text="hare"/></outline>
</body></opml>"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the example package is installed, by pip and without any download."""
    folder = tmp_path_factory.mktemp("extension")
    shutil.copytree(EXTENSION, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg*"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def extended(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process finds the example package."""
    monkeypatch.syspath_prepend(installed)
    monkeypatch.delitem(sys.modules, "vhe_extension", raising=False)
    plugins._entry_points.cache_clear()
    yield  # type: ignore[misc]
    plugins._entry_points.cache_clear()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("broken", "vhe_missing_module:Thing", "vhe.methods")
    monkeypatch.setattr(plugins, "_entry_points", lambda group: {"broken": point})


@pytest.mark.usefixtures("extended")
def test_the_reader_of_an_installed_package_reads_its_extension(tmp_path: Path) -> None:
    file, links = tmp_path / "notes.opml", tmp_path / "links.csv"
    file.write_text(OUTLINE)
    links.write_text("source,target\n2,3\n")
    network = vhe.read(file)
    assert network.texts == ("animals", "red fox hunts", "hare")
    assert network.edges.tolist() == [[0, 1], [0, 2]]
    assert vhe.read(file, links, name="mine").edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert vhe.read(file, name="mine").name == "mine"
    with pytest.raises(VHEError, match=r"--text: .*installed reader of opml.*omit"):
        vhe.read(file, text="title")
    file.write_text("<opml>")
    with pytest.raises(VHEError, match=r"notes\.opml: cannot read the outline"):
        vhe.read(file)


@pytest.mark.usefixtures("extended")
def test_the_method_of_an_installed_package_is_evaluated(
    network: TextNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert names()[-1] == "shared-words"
    vertices, edges = network.to_pandas()
    vertices.to_csv(tmp_path / "vertices.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    options = ["--ratio", "80", "--seeds", "0", "--json"]
    methods = "shared-words,vhe_extension:SharedWords"
    main(["evaluate", "link", str(tmp_path), "--method", methods, *options])
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["method"] for result in results] == methods.split(",")
    assert results[0]["auc"] == results[1]["auc"]
    assert make("shared-words", 7, dimension=8).random_state == 7  # type: ignore[attr-defined]


def test_a_class_in_the_current_folder_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_method_of_test.py").write_text(
        "import vhe\nclass Mine(vhe.CosineMethod):\n    fit = None\nnumber = 3\nclass No: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert type(make("own_method_of_test:Mine", 0)).__name__ == "Mine"
    with pytest.raises(VHEError, match="has no 'Other'"):
        make("own_method_of_test:Other", 0)
    with pytest.raises(VHEError, match="3 is not a class or function"):
        make("own_method_of_test:number", 0)
    with pytest.raises(VHEError, match=r"a method must have fit, .* but lacks fit"):
        make("own_method_of_test:No", 0)
    with pytest.raises(VHEError, match="no module 'own_methods'; install"):
        make("own_methods.sub:Mine", 0)
    (tmp_path / "needs_of_test.py").write_text("import vhe_absent")
    with pytest.raises(VHEError, match="needs_of_test needs vhe_absent"):
        make("needs_of_test:Mine", 0)
    (tmp_path / "fails_of_test.py").write_text("1 / 0")
    with pytest.raises(VHEError, match="cannot import fails_of_test: ZeroDivisionError"):
        make("fails_of_test:Mine", 0)


@pytest.mark.usefixtures("failing")
def test_a_package_that_fails_is_named() -> None:
    with pytest.raises(VHEError, match="broken: cannot load vhe_missing_module:Thing of the"):
        make("broken", 0)


def test_a_reader_must_return_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda group, name: {"abc": list}.get(name))
    with pytest.raises(VHEError, match=r"file\.abc: the installed reader of abc returned list"):
        vhe.read(tmp_path / "file.abc")
    assert plugins.load("vhe.encoders", "unknown") is None

"""The package as a whole: quick to import, one version everywhere, links that lead somewhere."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vhe

ROOT = Path(__file__).parent.parent
HEAVY = {"torch", "pandas", "sklearn", "networkx", "scipy", "pyarrow", "matplotlib"}


def modules_after(code: str) -> set[str]:
    """The top-level modules that a fresh Python has imported after running ``code``."""
    script = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code", ["import vhe", "import vhe.cli", "import vhe; dir(vhe); vhe.VHEError; vhe.VHEConfig"]
)
def test_importing_the_package_and_the_command_imports_nothing_heavy(code: str) -> None:
    assert not modules_after(code) & HEAVY


def test_import_time_is_a_small_part_of_pythons_own_start() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import vhe"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    cumulative = re.search(r"\|\s+(\d+) \| vhe$", done.stderr, re.MULTILINE)
    assert cumulative is not None
    assert int(cumulative[1]) < 200_000  # microseconds


@pytest.mark.parametrize("name", vhe.__all__)
def test_every_export_is_there(name: str) -> None:
    if name == "VHE":
        pytest.importorskip("vhe.model", exc_type=ImportError)
    assert getattr(vhe, name) is not None
    assert name in dir(vhe)


def test_evaluate_can_be_called_whatever_was_imported_before() -> None:
    importlib.import_module("vhe.evaluate.link")
    assert callable(vhe.evaluate)
    assert callable(vhe.evaluate.link.evaluate)  # type: ignore[attr-defined]


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        vhe.nonsense  # noqa: B018


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]  # taken from vhe/__init__.py
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == vhe.__version__  # type: ignore[index]
    released = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == vhe.__version__


def test_constraints_pin_every_dependency_of_the_development_installation() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["plot"], *extras["dev"]]
    names = {re.split(r"[\[<>=!~ ]", requirement)[0].lower() for requirement in wanted} - {"vhe"}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert names <= set(pins)
    assert not any("+" in version for version in pins.values())
    assert list(pins) == sorted(pins)


def test_local_links_in_the_documents_lead_somewhere() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "check_links.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout

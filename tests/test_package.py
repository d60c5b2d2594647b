"""The package: import time, one version everywhere, messages about missing extras, layout."""

import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import vhe
from vhe.cli import main

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
    "code",
    [
        "import vhe",
        "import vhe.cli",
        "import vhe; dir(vhe); vhe.VHEError; vhe.VHEConfig; vhe.PairVHEConfig",
    ],
)
def test_importing_the_package_and_the_command_imports_nothing_heavy(code: str) -> None:
    assert not modules_after(code) & HEAVY


def test_the_package_is_imported_in_a_fifth_of_a_second() -> None:
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
def test_every_exported_name_exists(name: str) -> None:
    assert getattr(vhe, name) is not None
    assert name in dir(vhe)


def test_the_reference_documents_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    documented = set(re.findall(r"^\.\. auto\w+:: vhe\.(\w+)$", page, re.MULTILINE))
    assert documented == set(vhe.__all__) - {"__version__"}


def test_public_modules_export_what_the_reference_documents() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    documented: dict[str, set[str]] = {}
    for path in re.findall(r"^\.\. auto\w+:: (vhe\.\S+)$", page, re.MULTILINE):
        module, _, name = path.rpartition(".")
        home = vhe._MODULES[name] if module == "vhe" else module
        documented.setdefault(home, set()).add(name)
    for module, names in documented.items():
        exported = set(importlib.import_module(module).__all__) - {"Estimator"}  # for annotations
        assert exported == names, module


# Between the parts of vhe, and attributes that are parameters.
INTERNAL = {"config_class", "has_encoder", "model_name", "probability", "probability_indices"}
INTERNAL |= {"takes_vectors"}


def test_the_reference_documents_every_method_of_the_estimators() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    members = re.search(r"autoclass:: vhe\.VHE\n +:members: (.+?)\n\n", page, re.DOTALL)
    assert members is not None
    documented = set(re.split(r"[,\s]+", members[1]))
    public = {
        name
        for estimator in (vhe.VHE, vhe.PairVHE)
        for part in estimator.__mro__
        if part.__module__.startswith("vhe.")
        for name in vars(part)
        if not name.startswith(("_", "set_"))
    }
    parameters = {*vhe.VHE().get_params(), *vhe.PairVHE().get_params()}
    assert public - parameters - INTERNAL == documented


def test_evaluate_is_a_function_after_its_package_was_imported() -> None:
    importlib.import_module("vhe.evaluation.link")
    assert callable(vhe.evaluate)
    assert callable(vhe.evaluation.link.evaluate)  # type: ignore[attr-defined]


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
    wanted = [*project["dependencies"], *extras["plot"], *extras["docs"], *extras["dev"]]
    names = {re.split(r"[\[<>=!~ ]", requirement)[0].lower() for requirement in wanted} - {"vhe"}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert names <= set(pins)
    assert not any("+" in version for version in pins.values())
    assert list(pins) == sorted(pins)


def test_local_links_in_the_documentation_are_valid() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "check_links.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


# --- without extras: messages name the extra that is needed


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Hides packages from import."""

    def hide(*packages: str) -> None:
        for name in list(sys.modules):
            if name.partition(".")[0] in packages or name == "vhe.web.app":
                monkeypatch.delitem(sys.modules, name)
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return hide


@pytest.mark.parametrize(
    ("extra", "packages", "words"),
    [
        ("plot", ["matplotlib"], "map MODEL --out map.png"),
        ("plot", ["matplotlib"], "evaluate link MODEL --reliability curve.png"),
        ("web", ["fastapi", "uvicorn"], "serve MODEL"),
        ("baselines", ["gensim"], "evaluate link --vertices V --edges E --method deepwalk"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    extra: str,
    packages: list[str],
    words: str,
    without: Callable[..., None],
    fitted: vhe.VHE,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    fitted.save("MODEL")
    vertices, edges = fitted.network_.to_pandas()
    vertices.to_csv("V.csv", index=False)
    edges.to_csv("E.csv", index=False)
    without(*packages)
    files = {"V": "V.csv", "E": "E.csv"}
    assert main([files.get(word, word) for word in words.split()]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert f"pip install 'vhe[{extra}]'" in lines[-1]
    assert len(lines[-1]) < 200


def test_to_pyg_names_the_extra_that_it_needs(
    without: Callable[..., None], fitted: vhe.VHE
) -> None:
    without("torch_geometric")
    with pytest.raises(vhe.VHEError, match=r"vhe\[baselines\]"):
        fitted.to_pyg()


def test_the_core_works_without_any_extra(tmp_path: Path, fitted: vhe.VHE) -> None:
    vertices, edges = fitted.network_.to_pandas()
    vertices.to_csv(tmp_path / "v.csv", index=False)
    edges.to_csv(tmp_path / "e.csv", index=False)
    (tmp_path / "new.csv").write_text("id,text\nn,t1w1 t1w2 common0\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"].items()
    extras = {r for name, needs in optional if name not in ("dev", "docs") for r in needs}
    hidden = {re.split(r"[\[<>=!~ ]", need)[0].replace("-", "_") for need in extras} - {"vhe"}
    script = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(hidden)!r}))
from vhe.cli import main
for line in '''fit --vertices v.csv --edges e.csv --out m --seed 0 --set max_steps=2
fit --vertices v.csv --edges e.csv --out p --seed 0 --model pair --set steps=2
suggest m v1
score m v1 v2
explain m v1 v2 --html x.html
add m --vertices new.csv --out m2
embed m2 --out z.parquet
map m2 --out map.html'''.splitlines():
    assert main(line.split()) == 0, line
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert (tmp_path / "map.html").exists()


# --- packages


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_the_packages_are_small_and_complete(built: Path) -> None:
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith(f"vhe-{vhe.__version__}-")
    assert wheel.stat().st_size < 1_000_000
    assert source.stat().st_size < 2_000_000  # with tests and manual
    files = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "src" / "vhe").rglob("*"):
        if path.suffix in {".py", ".csv", ".html", ".js", ".css"}:
            assert path.relative_to(ROOT / "src").as_posix() in files


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    install = ["-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run([python, *install], check=True)
    command = tmp_path / "venv" / "bin" / "vhe"
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert version.stdout.strip() == vhe.__version__
    subprocess.run([command, "doctor"], check=True, cwd=tmp_path)
    subprocess.run([command, "demo"], check=True, cwd=tmp_path)
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000

"""Loading the native kernels: only from the package, never required; building the package."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import vhe
from vhe.runtime import native
from vhe.runtime.sparse import csr_tensor, multiply

ROOT = Path(__file__).parents[2]
COMPILERS = ("cc", "gcc", "clang")
needs_kernels = pytest.mark.skipif(native.library() is None, reason="kernels not built")
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler")
needs_checkout = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="not a checkout")


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("VHE_NATIVE", raising=False)
    native.library.cache_clear()
    yield
    native.library.cache_clear()


def test_the_library_belongs_to_the_package() -> None:
    assert native.FILE.parent == Path(vhe.__file__).parent / "native"
    functions = native.library()
    assert functions is None or functions._name == str(native.FILE)


@needs_kernels
def test_kernels_are_used_where_they_are_built(unloaded: None) -> None:
    assert native.level() in native.LEVELS
    assert native.is_available(torch.zeros(1))
    assert not native.is_available(torch.zeros(1, dtype=torch.float64))


@needs_kernels
def test_the_instruction_set_can_be_limited(
    unloaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VHE_NATIVE", "baseline")
    assert native.level() == "baseline"


@pytest.mark.parametrize("why", ["disabled", "not built", "damaged", "another interface"])
def test_otherwise_torch_does_the_work(
    why: str, unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "disabled":
        monkeypatch.setenv("VHE_NATIVE", "0")
    elif why == "not built":
        monkeypatch.setattr(native, "FILE", tmp_path / "kernels.so")
    elif why == "damaged":
        monkeypatch.setattr(native, "FILE", tmp_path / "kernels.so")
        native.FILE.write_bytes(b"not a library")
    else:
        monkeypatch.setattr(native, "INTERFACE", native.INTERFACE + 1)
    assert native.library() is None
    assert native.level() == "torch"
    assert not native.is_available(torch.zeros(1))
    sparse = pytest.importorskip("scipy.sparse")
    matrix = csr_tensor(sparse.eye_array(3, format="csr"), torch.device("cpu"))
    assert torch.equal(multiply(matrix, torch.ones(3, 2)), torch.ones(3, 2))


OPENMP_RUNTIMES = """
import torch
from vhe.runtime import native
native.library()
assert native._torch_threads() is not None
with open("/proc/self/maps") as file:
    loaded = {line.split()[-1] for line in file if ".so" in line}
prefixes = ("libgomp", "libomp", "libiomp")
print(*(path for path in loaded if path.split("/")[-1].startswith(prefixes)))
"""


@needs_kernels
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_native_code_and_torch_share_one_openmp_runtime() -> None:
    # the idle threads of a second runtime would compete with those of torch
    done = subprocess.run(
        [sys.executable, "-c", OPENMP_RUNTIMES], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    runtimes = done.stdout.split()
    assert len(runtimes) <= 1
    torch_files = Path(torch.__file__).resolve().parents[1]  # torch/lib or torch.libs
    assert all(Path(path).is_relative_to(torch_files) for path in runtimes)


LOAD_EVERYTHING = """
import os, sys
opened = []
def listen(event, arguments):
    if event == "ctypes.dlopen":
        opened.append(str(arguments[0]))
    elif event == "import" and arguments[1]:
        opened.append(str(arguments[1]))
    elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        if "git" not in str(arguments[0]):  # the commit of a checkout
            print("started", arguments, file=sys.stderr)
            sys.exit(3)
import torch, pandas, scipy.sparse.linalg, pyarrow.parquet, sklearn  # theirs is not our concern
sys.addaudithook(listen)
from vhe.cli import main
assert main("fit --vertices v.csv --edges e.csv --out m --seed 0 --set max_steps=2".split()) == 0
assert main("suggest m v1".split()) == 0
model, cache = os.path.abspath("m"), os.environ["VHE_CACHE"]
wrong = [path for path in opened if path.startswith((model, cache))]
assert not wrong, wrong
from vhe.runtime import native
assert str(native.FILE) in opened or native.level() == "torch"
"""


def test_nothing_is_executed_from_a_cache_or_model_folder(
    fitted: "vhe.VHE", tmp_path: Path
) -> None:
    """A library for every name that earlier versions looked for must stay unused."""
    vertices, edges = fitted.network_.to_pandas()
    vertices.to_csv(tmp_path / "v.csv", index=False)
    edges.to_csv(tmp_path / "e.csv", index=False)
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in ("compiled-0123456789abcdef.so", "kernels.so", "sitecustomize.py", "vhe.py"):
        (cache / name).write_bytes(b"raise SystemExit(4)")
    done = subprocess.run(
        [sys.executable, "-c", LOAD_EVERYTHING],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "src"), "VHE_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not [path for path in (tmp_path / "m").rglob("*") if path.suffix in (".so", ".py")]
    assert len(list(cache.iterdir())) == 4


# --- building


def copied(out: Path) -> Path:
    """What a build needs, without what earlier builds left behind."""
    source = out / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.dll"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    return source


def build_wheel(out: Path, **environment: str) -> zipfile.ZipFile:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run(
        [*build, "-o", str(out), str(copied(out))],
        check=True,
        capture_output=True,
        env=os.environ | environment,
    )
    (wheel,) = out.glob("*.whl")
    return zipfile.ZipFile(wheel)


def kernels_in(wheel: zipfile.ZipFile) -> list[str]:
    return [name for name in wheel.namelist() if name.startswith("vhe/native/")]


@pytest.mark.slow
@needs_checkout
@needs_compiler
def test_a_wheel_with_kernels_is_for_one_platform_and_all_pythons(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, VHE_NATIVE="1")
    assert kernels_in(wheel) == [f"vhe/native/{native.FILE.name}"]
    assert "-py3-none-" in str(wheel.filename)
    assert not str(wheel.filename).endswith("-any.whl")
    wheel.extractall(tmp_path / "wheel")
    functions = ctypes.CDLL(str(tmp_path / "wheel" / "vhe" / "native" / native.FILE.name))
    assert functions.vhe_interface() == native.INTERFACE


@needs_checkout
@pytest.mark.parametrize(
    "why",
    [
        "no compiler",
        pytest.param("disabled", marks=pytest.mark.slow),
        pytest.param("failing compiler", marks=pytest.mark.slow),
    ],
)
def test_a_wheel_without_kernels(why: str, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    environment = {"VHE_NATIVE": "0" if why == "disabled" else "1", "PATH": str(folder), "CC": ""}
    if why == "failing compiler":
        (folder / "cc").write_text("#!/bin/sh\nexit 1\n")
        (folder / "cc").chmod(0o755)
        environment["CC"] = "cc"
    if why == "disabled":
        environment["PATH"] = os.environ["PATH"]
    wheel = build_wheel(tmp_path, **environment)
    assert kernels_in(wheel) == []
    if why != "failing compiler":
        assert str(wheel.filename).endswith("-py3-none-any.whl")


SPILL = """
typedef float vec __attribute__((vector_size(32)));
void use(vec *);
void spill(vec *from) { vec copy = *from; use(&copy); }
"""


@needs_checkout
@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64") or not shutil.which("gcc"),
    reason="no GCC for x86-64 on Linux",
)
def test_vectors_on_the_stack_of_windows_need_no_alignment(tmp_path: Path) -> None:
    """Windows aligns the stack to 16 bytes, and an aligned move of 32 bytes would fail there."""
    (flag,) = re.findall(r'"(-Wa,[^"]+)"\] if WINDOWS', (ROOT / "setup.py").read_text("utf-8"))

    def aligned_moves(*flags: str) -> bool:
        code = tmp_path / "spill.o"
        compile_ = ["gcc", "-O3", "-mavx", *flags, "-x", "c", "-c", "-", "-o", code]
        subprocess.run(compile_, input=SPILL, text=True, check=True)
        listing = ["objdump", "--disassemble", code]
        done = subprocess.run(listing, capture_output=True, text=True, check=True)
        return "vmova" in done.stdout

    assert aligned_moves()
    assert not aligned_moves(flag)


@pytest.mark.slow
@needs_checkout
def test_the_package_installs_and_works_without_a_compiler(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    bin_folder = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    environment = os.environ | {"PATH": str(bin_folder), "CC": ""}
    environment.pop("PYTHONPATH", None)
    constraints = str(ROOT / "constraints.txt")
    install = ["-m", "pip", "install", "-q", "-c", constraints, str(copied(tmp_path))]
    subprocess.run([bin_folder / "python", *install], check=True, env=environment)
    question = "from vhe.runtime import native; print(native.level())"
    answer = subprocess.run(
        [bin_folder / "python", "-c", question],
        check=True,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.strip() == "torch"
    subprocess.run([bin_folder / "vhe", "demo"], check=True, env=environment, cwd=tmp_path)

"""`vhe doctor`: report the environment."""

import importlib
import importlib.metadata
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any, get_args

from vhe import __version__
from vhe.cli.options import Help, Json
from vhe.cli.output import diagnostics_to_stderr, print_result, print_status
from vhe.runtime import plugins
from vhe.runtime.messages import counted

CORE = (
    *("torch", "numpy", "scipy", "sklearn", "networkx", "pandas", "safetensors", "pyarrow"),
    *("cyclopts", "rich"),
)
MIB, GIB = 2**20, 2**30


def doctor(
    model: Annotated[Path | None, Help("model folder to check instead")] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Report the environment and missing packages, or check a model folder.

    With MODEL, every file of the folder is verified, and what commands that were
    killed have left beside it is listed and explained. Nothing is changed.
    """
    if model is not None:
        from vhe.cli.model_check import check_model

        return check_model(model, json)
    with diagnostics_to_stderr(json):
        core = {name: _import_version(name) for name in CORE}
        broken = [name for name, found in core.items() if found["version"] is None]
        report: dict[str, Any] = {
            "vhe": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": _cores(),
            "memory_gib": _memory(),
            "core": core,
            "extras": _extras(),
            "extensions": {group: plugins.names(group) for group in get_args(plugins.Group)},
            "torch": None if "torch" in broken else _torch(),
            "data": None if broken else _data(),
        }
    print_result(json, report, _rows(report))
    for name in broken:
        print_status(f"vhe: cannot import {name}: {core[name]['error']}")
    return 1 if broken else 0


def _import_version(name: str) -> dict[str, str | None]:
    """Import a package: one that is installed can still be broken."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # a broken binary can raise anything
        return {"version": None, "error": " ".join(str(error).split())}
    version = getattr(module, "__version__", None)
    return {"version": str(version or importlib.metadata.version(name)), "error": None}


def _extras() -> dict[str, dict[str, Any]]:
    """Return the missing packages of each extra and the command that installs them."""
    try:
        requirements = importlib.metadata.requires("vhe") or []
    except importlib.metadata.PackageNotFoundError:  # run from source without installation
        return {}
    extras: dict[str, dict[str, Any]] = {}
    for requirement in requirements:
        found = re.match(r"""([\w.-]+)([^;]*);.*extra == ['"](\w+)['"]""", requirement)
        if not found or found[1] == "vhe":
            continue
        extra = extras.setdefault(found[3], {"missing": [], "install": None})
        try:
            importlib.metadata.version(found[1])
        except importlib.metadata.PackageNotFoundError:
            extra["missing"].append(found[1])
            install = extra["install"] or "python -m pip install"
            extra["install"] = f"{install} '{found[1]}{found[2].strip()}'"
    return extras


def _cores() -> int | None:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _memory() -> dict[str, float | None]:
    """Return the total and the available memory in GiB; None where it is not reported."""
    total = available = None
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        total = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB, 1)
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (line := re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())):
        available = round(int(line[1]) * 1024 / GIB, 1)
    return {"total": total, "available": available}


def _torch() -> dict[str, Any]:
    import torch

    from vhe.runtime import native

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return {
        "device": device,
        "threads": torch.get_num_threads(),
        "native_kernels": native.level(),
        "gflops": round(_matrix_rate(device), 1),
    }


def _matrix_rate(device: str, size: int = 1024) -> float:
    """Return the best rate in GFLOP/s of square float32 matrix products within half a second."""
    import torch

    a = torch.rand(size, size, device=device)
    seconds: list[float] = []
    while sum(seconds) < 0.5:
        start = time.perf_counter()
        (a @ a)[0, 0].item()  # waits for a GPU
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds) / 1e9


def _data() -> dict[str, Any]:
    from vhe.cli.data import locations
    from vhe.runtime.files import cache_folder

    cache = cache_folder()
    return {
        "VHE_DATA_DIR": os.environ.get("VHE_DATA_DIR"),
        "cache": str(cache),
        "cache_mib": round(sum(f.stat().st_size for f in cache.rglob("*") if f.is_file()) / MIB, 1),
        "datasets": locations(),
    }


def _rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    memory = report["memory_gib"]
    rows = [
        ("vhe", report["vhe"]),
        ("python", f"{report['python']} ({sys.executable})"),
        ("platform", report["platform"]),
        ("cores", f"{report['cores']} usable"),
        ("memory", f"{memory['total']} GiB, {memory['available']} GiB available"),
        *((name, found["version"] or "import failed") for name, found in report["core"].items()),
    ]
    if torch := report["torch"]:
        kernels = torch["native_kernels"]
        kernels = "not available (pure torch)" if kernels == "torch" else kernels
        rows += [
            ("device", f"{torch['device']}, {counted(torch['threads'], 'thread')}"),
            ("native kernels", kernels),
            ("matrix rate", f"{torch['gflops']} GFLOP/s, 1024 x 1024 float32 products"),
        ]
    for name, extra in report["extras"].items():
        missing = f"missing; {extra['install']}" if extra["missing"] else "complete"
        rows.append((f"extra {name}", missing))
    if not report["extras"]:
        rows.append(("extras", "unknown: vhe runs from source and is not installed"))
    extensions = [f"{group}: {', '.join(of)}" for group, of in report["extensions"].items() if of]
    rows.append(("extensions", "; ".join(extensions) or "none"))
    if data := report["data"]:
        rows += [
            ("VHE_DATA_DIR", data["VHE_DATA_DIR"] or "not set"),
            ("cache", f"{data['cache']} ({data['cache_mib']} MiB)"),
            *(
                (f"data {name}", location or "not downloaded")
                for name, location in data["datasets"].items()
            ),
        ]
    return rows

"""Provenance of a result: seed, versions and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vhe import __version__
from vhe.runtime import native

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn")


def provenance(seed: int) -> dict[str, Any]:
    import torch

    return {
        "seed": seed,
        "versions": {"vhe": __version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "git": _git_hash(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "kernels": native.level(),
    }


def _git_hash() -> str | None:
    """The commit of this checkout of vhe; None for an installed package."""
    source = Path(__file__).resolve().parents[3]
    if not (source / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(source), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None

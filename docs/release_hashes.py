"""Write requirements-release.txt: what pip would install for vhe here, each with its SHA-256.

python docs/release_hashes.py
"""

import json
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAD = """\
# What a release of vhe was tested with, for {system}, Python {python}.
# Made by `make hashes`; use: pip install --require-hashes -r requirements-release.txt
"""


def pinned(report: dict) -> list[str]:
    """A line for each package of pip's report but vhe itself, which is installed from here."""
    lines = []
    for package in report["install"]:
        name = package["metadata"]["name"].lower().replace("_", "-")
        if name != "vhe":
            digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={package['metadata']['version']} --hash=sha256:{digest}\n")
    return sorted(lines)


if __name__ == "__main__":
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--report", "-", "--constraint", str(ROOT / "constraints.txt"), str(ROOT)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    system = f"{platform.system()} {platform.machine()}"
    python = ".".join(platform.python_version_tuple()[:2])
    head = HEAD.format(system=system, python=python)
    text = head + "".join(pinned(json.loads(done.stdout)))
    (ROOT / "requirements-release.txt").write_text(text)

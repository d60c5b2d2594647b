"""The packages of a release are pinned by checksum, in the versions that were tested."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"(?P<name>[a-z0-9.-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_of_a_release_has_a_checksum() -> None:
    text = (ROOT / "requirements-release.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found)
    released = {
        normalised(line["name"]): line["version"].partition("+")[0] for line in found if line
    }
    constraints = (ROOT / "constraints.txt").read_text()
    tested = dict(re.findall(r"^([^#=\s]+)==(\S+)$", constraints, re.MULTILINE))
    tested = {normalised(name): version for name, version in tested.items()}
    assert {name: tested.get(name) for name in released} == released
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {normalised(re.split(r"[<>=!~\[; ]", line)[0]) for line in project["dependencies"]}
    assert needed <= released.keys()

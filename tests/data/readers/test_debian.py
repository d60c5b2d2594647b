"""apt's package list as a network: from a small list, a fake command and, if available, apt."""

import shutil
import sys
from pathlib import Path

import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers.debian import parse, read_debian
from vhe.errors import VHEError

LISTED = """\
Package: game
Version: 1.0
Depends: game-data (>= 1.0), game-data (<= 2.0), libc6:any | libc6-alt, mail-server
Pre-Depends: dpkg
Suggests: game
Description: strategy game
 A game of ancient warfare.
 .
 It is played on maps.
Description-md5: 12ab
Tag: role::program,
 not::description
Section: contrib/games

Package: game-data
Recommends: game
Description: data of the game
Section: games

Package: libc6
Description: C library
Section: libs

Package: libc6
Architecture: i386
Depends: dpkg
Description: C library again
Section: libs

Package: dpkg
Depends: libc6 (>= 2.0) [amd64]
Description-en: package manager
"""


def test_packages_texts_sections_and_dependencies() -> None:
    network = TextNetwork.from_parts(parse(LISTED.splitlines(keepends=True)))
    assert network.ids == ("game", "game-data", "libc6", "dpkg")
    assert network.texts == (
        "strategy game A game of ancient warfare. It is played on maps.",
        "data of the game",
        "C library",
        "package manager",
    )
    assert network.labels == ("games", "games", "libs", None)
    # mail-server and libc6-alt are not packages; a package has no edge to itself
    assert network.edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 0], [3, 2]]
    assert network.directed
    assert network.name == "debian"


def test_reading_the_output_of_a_command(tmp_path: Path) -> None:
    script = tmp_path / "apt.py"
    script.write_text(f"print({LISTED!r})")
    assert len(read_debian([sys.executable, str(script)]).ids) == 4
    script.write_text(f"print({LISTED!r}); raise SystemExit(100)")
    with pytest.raises(VHEError, match="failed with status 100; run apt-get update"):
        read_debian([sys.executable, str(script)])
    script.write_text("")
    with pytest.raises(VHEError, match="lists are empty; run apt-get update"):
        read_debian([sys.executable, str(script)])
    with pytest.raises(VHEError, match=r"cannot be run .* needs apt"):
        read_debian([str(tmp_path / "no-apt")])


def test_packages_without_any_dependency() -> None:
    parts = parse(["Package: a\n", "Description: x\n"])
    assert parts.edges.shape == (0, 2)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("apt-cache") is None, reason="needs apt")
def test_packages_of_this_machine() -> None:
    try:
        network = TextNetwork.from_parts(read_debian())
    except VHEError as error:
        pytest.skip(str(error))
    assert network.index("dpkg") >= 0
    assert len(network.links) > len(network)

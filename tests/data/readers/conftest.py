"""Files and networks for the tests of the readers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vhe.data.network import TextNetwork


@pytest.fixture
def network() -> TextNetwork:
    texts = ['red, "quick" fox', "brown\nfox\tjumps", "größer 雪", ""]
    return TextNetwork(
        ["a", "b b", 'c"', "d"], texts, [[0, 1], [3, 2], [2, 2]], ["x", None, "y", "x"]
    )


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., dict[str, Path]]:
    """Write files, `vertices_csv` for vertices.csv, and return their paths by the same names."""

    def write(**files: str | bytes) -> dict[str, Path]:
        paths = {}
        for name, content in files.items():
            paths[name] = tmp_path / name.replace("_", ".")
            data = content if isinstance(content, bytes) else content.encode()
            paths[name].write_bytes(data)
        return paths

    return write


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write a folder of text files by their relative paths."""

    def write(files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return tmp_path / "tree"

    return write

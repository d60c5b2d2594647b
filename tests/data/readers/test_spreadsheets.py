"""Damaged spreadsheets: read, or refused in one sentence, and nothing of them is printed."""

import io
import random
import zipfile
from pathlib import Path

import pandas
import pytest

from vhe.data.sources import read
from vhe.errors import VHEError

TABLE = pandas.DataFrame(
    {"id": ["a", "b", "c"], "text": ["red fox", "fox", "hen"], "references": ["b", "c", "a"]}
)


def rezipped(parts: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture(params=[("xlsx", "openpyxl"), ("ods", "odf")], ids=["xlsx", "ods"])
def spreadsheet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    extension, engine = request.param
    pytest.importorskip(engine)
    path = tmp_path / f"network.{extension}"
    TABLE.to_excel(path, index=False, engine=engine)
    return path


def test_damaged_parts(spreadsheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts of the archive are truncated, changed, left out, or contain an escape sequence."""
    assert len(read(spreadsheet)) == 3
    with zipfile.ZipFile(spreadsheet) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    draw, refused = random.Random(0), 0
    for k in range(120):
        name = draw.choice(sorted(parts))
        content = bytearray(parts[name])
        if k % 4 == 0:
            del content[draw.randrange(len(content)) :]
        elif k % 4 == 1:
            for _ in range(draw.randrange(1, 8)):
                content[draw.randrange(len(content))] = draw.randrange(256)
        elif k % 4 == 2:
            content = bytearray(
                bytes(content).replace(b"1", draw.choice([b"-9", b"", b"<v>1e999"]))
            )
        else:
            content[len(content) // 2 :] = b"\x1b[2J"
        spreadsheet.write_bytes(rezipped(parts | {name: bytes(content)}))
        try:
            read(spreadsheet)
        except VHEError as error:
            refused += 1
            assert "\n" not in str(error)  # noqa: PT017
            assert "network." in str(error)  # noqa: PT017
    assert refused > 30
    assert capsys.readouterr() == ("", "")

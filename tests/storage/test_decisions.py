"""A file of decisions is input: whatever is in it, it is read or refused in one sentence."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from vhe.errors import VHEError
from vhe.storage.decisions import APPLICATION, Decisions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    decisions = Decisions(tmp_path / "decisions")
    decisions.decide("v0", ("v", 1), "accepted", 0.5)
    decisions.close()
    return tmp_path / "decisions"


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


ROWS = {
    "a key that is not JSON": "'junk', '\"x\"', 'accepted', 0.5, ''",
    "a key of bytes": "x'ff00', '\"x\"', 'accepted', 0.5, ''",
    "a list as an id": "'\"x\"', '[1]', 'accepted', 0.5, ''",
    "an object as an id": """'"x"', '{"a": 1}', 'accepted', 0.5, ''""",
    "a key nested deeply": f"""'"x"', '{"[" * 100_000}', 'accepted', 0.5, ''""",
    "keys in another order": """'"b"', '"a"', 'accepted', 0.5, ''""",
    "an unknown state": """'"a"', '"b"', 'deferred', 0.5, ''""",
    "a state of bytes": """'"a"', '"b"', x'00', 0.5, ''""",
    "a probability of letters": """'"a"', '"b"', 'accepted', 'abc', ''""",
    "an infinite probability": """'"a"', '"b"', 'accepted', 9e999, ''""",
    "a probability of 17": """'"a"', '"b"', 'accepted', 17, ''""",
    "a time of bytes": """'"a"', '"b"', 'accepted', 0.5, x'00'""",
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_row_that_is_no_decision(row: str, path: Path) -> None:
    execute(path, f"INSERT INTO decisions VALUES ({row})")
    with pytest.raises(VHEError, match=r"the decision on .* is damaged") as refused:
        Decisions(path)
    assert len(str(refused.value)) < 1000


ENDLESS = """
CREATE VIEW decisions (source, target, state, probability, decided) AS
WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
SELECT '"a"', '"' || x || '"', 'accepted', 0.5, '' FROM c
"""
ROBBER = "CREATE TRIGGER t AFTER INSERT ON decisions BEGIN DELETE FROM decisions; END"


@pytest.mark.parametrize("statements", [("DROP TABLE decisions", ENDLESS), (ROBBER,)])
def test_views_and_triggers_are_refused(statements: tuple[str, ...], path: Path) -> None:
    execute(path, *statements)
    with pytest.raises(VHEError, match="file of decisions is damaged"):
        Decisions(path)


def test_reading_creates_no_table(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(VHEError, match="not a file of decisions"):
        Decisions(path, create=False)
    assert path.read_bytes() == b""
    execute(path, f"PRAGMA application_id={APPLICATION}", "PRAGMA user_version=1")
    with pytest.raises(VHEError, match="file of decisions is damaged"):
        Decisions(path, create=False)


def test_another_format(path: Path) -> None:
    execute(path, "PRAGMA user_version=2")
    with pytest.raises(VHEError, match="format 2, but this version of vhe reads format 1"):
        Decisions(path)


def test_damaged_files(path: Path) -> None:
    """Truncated files, and changed bytes anywhere and in the header and the schema."""
    whole, draw, refused = path.read_bytes(), random.Random(1), 0
    schema = whole.index(b"CREATE TABLE")
    for kind in range(300):
        damaged = bytearray(whole)
        if kind % 3 == 0:
            del damaged[draw.randrange(len(damaged)) :]
        else:
            low, high = (0, len(damaged)) if kind % 3 == 1 else (schema - 100, schema + 250)
            for _ in range(draw.randrange(1, 10)):
                damaged[draw.randrange(low, high)] = draw.randrange(256)
        path.write_bytes(damaged)
        try:
            Decisions(path, create=False).close()
        except VHEError as error:
            refused += 1
            assert "\n" not in str(error)  # noqa: PT017
    assert refused > 100


def attempt(decisions: Decisions, k: int) -> str:
    """Why a decision cannot be saved, or an empty string."""
    try:
        decisions.decide("x", k, "rejected", 0.5)
    except VHEError as error:
        return str(error)
    return ""


def test_a_full_disk_is_one_sentence_and_loses_no_decision(path: Path) -> None:
    resource = pytest.importorskip("resource")
    decisions = Decisions(path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        k = 0
        while k < 10_000 and not (message := attempt(decisions, k)):
            k += 1
        assert "cannot be read or saved" in message
        assert "\n" not in message
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        saved = decisions.all()
        decisions.close()
    assert Decisions(path).all() == saved
    assert len(saved) == 1 + k

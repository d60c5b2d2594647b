"""Databases: SQLite always, and a PostgreSQL server that the tests start where it is installed."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import quote

import pytest

from vhe.cli import main
from vhe.data.readers import sql
from vhe.data.sources import read
from vhe.errors import VHEError

VERTICES = [(1, "red fox", "x"), (2, "brown fox", None), (3, "blue sky", "y")]
EDGES = [(1, 2), (2, 3)]


def _postgres() -> ModuleType:
    spec = importlib.util.spec_from_file_location("postgres", Path(__file__).parent / "postgres.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


postgres = _postgres()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "papers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE vertices (id INTEGER, text TEXT, label TEXT)")
        connection.execute("CREATE TABLE edges (source INTEGER, target INTEGER)")
        connection.executemany("INSERT INTO vertices VALUES (?, ?, ?)", VERTICES)
        connection.executemany("INSERT INTO edges VALUES (?, ?)", EDGES)
    return path


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    if postgres.reason_to_skip():
        pytest.skip(postgres.reason_to_skip())
    import psycopg

    with postgres.server() as (host, port):
        account = f"reader:{quote(postgres.PASSWORD, safe='')}"
        with psycopg.connect(
            host=host, port=port, user="reader", password=postgres.PASSWORD, dbname="postgres"
        ) as connection:
            connection.execute("CREATE TABLE papers (key bigint, title text, topic text, at date)")
            connection.execute("CREATE SEQUENCE numbers")
            connection.execute("CREATE TABLE citations (citing bigint, cited bigint)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO papers VALUES (%s, %s, %s, '2019-12-08')", VERTICES)
                cursor.executemany("INSERT INTO citations VALUES (%s, %s)", EDGES)
        yield f"postgresql://{account}@{host}:{port}/postgres"


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"])
def test_sqlite_with_the_default_queries(database: Path, form: str) -> None:
    network = read(form.format(database))
    assert network.ids == (1, 2, 3)
    assert network.texts == ("red fox", "brown fox", "blue sky")
    assert network.labels == ("x", None, "y")
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.name == "papers"


def test_queries_with_any_columns_and_characters(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "CHUNK", 2)
    network = read(
        f"sqlite:///{database}",
        vertices_query="SELECT id AS k, text || ' 100% :x' AS a, 'more' AS b FROM vertices",
        edges_query="SELECT source, target AS cites FROM edges",
        id="k",
        text=["a", "b"],
        target="cites",
        name="animals",
    )
    assert network.texts[0] == "red fox 100% :x\nmore"
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.name == "animals"


def test_references_instead_of_edges(database: Path) -> None:
    query = "SELECT id, text, CASE id WHEN 1 THEN '2;3' ELSE '9' END AS cites FROM vertices"
    network = read(str(database), vertices_query=query)
    assert network.edges.tolist() == [[0, 1], [0, 2]]
    assert network.notes[1].startswith("2 references with unknown ids skipped (first: '9' at ")


def test_a_database_with_other_tables(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("ALTER TABLE vertices RENAME TO papers")
    expected = r"papers\.db has no table vertices: give --vertices-query SQL .*'edges', 'papers'"
    with pytest.raises(VHEError, match=expected):
        read(str(database))


def test_a_query_cannot_change_the_database(database: Path) -> None:
    with pytest.raises(VHEError, match=r"papers\.db: attempt to write a readonly database"):
        read(str(database), vertices_query="DELETE FROM vertices")
    assert len(read(str(database))) == 3


@pytest.mark.parametrize(
    ("url", "options", "sentence"),
    [
        ("sqlite:///missing.db", {}, r"missing\.db does not exist"),
        ("{}", {"vertices_query": "SELECT * FROM papers"}, r"papers\.db: no such table: papers"),
        ("{}", {"edges_query": "SELECT 1"}, "no column for the source"),
        ("{}", {"vertices_query": "SELEC"}, r"papers\.db: near \"SELEC\": syntax error"),
        (
            "{}",
            {"vertices_query": "SELECT id, 'x' AS words FROM vertices", "edges_query": "SELECT 1"},
            r"papers\.db, query of vertices: no column for the text; .*'id', 'words'",
        ),
        (
            "{}",
            {"edges_query": "SELECT 1 AS source, 7 AS target"},
            r"papers\.db, query of edges \(row 1\): unknown vertex id 7",
        ),
        (
            "{}",
            {"vertices_query": "SELECT 1 AS id, 'x' AS text UNION ALL SELECT 1, 'y'"}
            | {"edges_query": "SELECT 1 AS source, 1 AS target"},
            r"query of vertices \(row 2\): duplicate id 1 \(first at .*\(row 1\)\)",
        ),
        ("{}", {"vertices_query": "SELECT id, text FROM vertices WHERE 0"}, "returned no rows"),
        ("oracle9://u:secret@h/d", {}, "SQLAlchemy has no dialect for oracle9"),
        ("postgresql://u:secret@h:port/d", {}, "the database URL cannot be parsed"),
        ("postgresql://u:secret@127.0.0.1:1/d", {}, r"postgresql://127\.0\.0\.1/d: .*refused"),
        ("https://example.org/a.csv", {}, "downloads are not supported"),
    ],
)
def test_errors_of_databases(
    database: Path, url: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(VHEError, match=sentence) as caught:
        read(url.format(database), **options)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_queries_need_a_database(tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="queries need a database"):
        read(tmp_path, vertices_query="SELECT 1")


def test_without_sqlalchemy(monkeypatch: pytest.MonkeyPatch, database: Path) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(VHEError, match=r"needs SQLAlchemy; install vhe\[sql\]"):
        read(str(database))


def test_postgresql(postgres_url: str) -> None:
    network = read(
        postgres_url,
        vertices_query="SELECT * FROM papers WHERE title LIKE '%' ORDER BY key::text",
        edges_query="SELECT * FROM citations ORDER BY citing",
    )
    assert network.ids == (1, 2, 3)
    assert network.texts == ("red fox", "brown fox", "blue sky")
    assert network.labels == ("x", None, "y")
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.name == "postgres"
    assert network.notes == (
        "query of vertices: id: key; text: title; label: topic; ignored: at",
        "query of edges: source: citing; target: cited",
    )


def test_postgresql_is_read_only_and_keeps_the_password_secret(
    postgres_url: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    secrets = (postgres.PASSWORD, quote(postgres.PASSWORD, safe=""))
    wrong = postgres_url.replace(secrets[1], secrets[1] + "x")
    for url, query, sentence in (
        (postgres_url, "SELECT nextval('numbers') AS id", "read-only transaction"),
        (postgres_url, "SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        (postgres_url, f"SELECT '{postgres.PASSWORD}'::int", "invalid input syntax"),
        (wrong, "SELECT 1", "password authentication failed"),
    ):
        arguments = ["fit", "--sql", url, "--vertices-query", query, "--out", str(tmp_path / "m")]
        assert main(arguments) == 2
        shown = "".join(capfd.readouterr())
        assert sentence in shown
        assert len(shown.splitlines()) == 1
        assert not any(secret in shown for secret in secrets)


def test_postgresql_from_the_environment_to_suggestions(
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VHE_SQL_URL", postgres_url)
    model = tmp_path / "model"
    queries = ["--vertices-query", "SELECT * FROM papers", "--edges-query", "TABLE citations"]
    tiny = ["--epochs", "1", "--seed", "0", "--set", "latent_dim=2"]
    assert main(["fit", *queries, "--out", str(model), *tiny]) == 0
    assert main(["suggest", str(model), "1"]) == 0
    secret = quote(postgres.PASSWORD, safe="")
    written = b"".join(path.read_bytes() for path in model.rglob("*") if path.is_file())
    for word in (postgres.PASSWORD, secret):
        assert word.encode() not in written
        assert word not in "".join(capfd.readouterr())


def test_a_damaged_schema_that_is_not_utf8_is_one_sentence(database: Path) -> None:
    damaged = database.read_bytes().replace(b"CREATE TABLE edges", b"CREATE TABLX edges")
    database.write_bytes(damaged.replace(b"tableedgesedges", b"table\xf6dges\xf6dges"))
    with pytest.raises(VHEError, match=r"papers\.db is damaged, or its text is not UTF-8"):
        read(database)

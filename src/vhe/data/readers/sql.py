"""Vertices and edges from a database, by SQLAlchemy: SQLite, PostgreSQL, DuckDB and others.

Two queries return the vertices (columns as in tables: id, text, vector, label or references) and
the edges (source, target, weight); the default is all rows of the tables `vertices` and `edges`.
Rows are fetched in chunks, and the connection is read-only where the database supports it. The
password is taken from the URL or from the environment, as the driver reads it (PGPASSWORD); it is
never printed or stored: messages and the name of the network contain only host and database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from vhe.data.parts import NetworkParts
from vhe.data.readers.columns import OPTIONAL, Table, column_notes, combined, find_columns
from vhe.data.readers.network_tables import EDGE_MEANINGS, VERTEX_MEANINGS, network_of
from vhe.data.readers.records import DEFAULTS, Rules
from vhe.errors import VHEError
from vhe.runtime.messages import listed, shortened

CHUNK = 10_000
DEFAULT = {"vertices": "SELECT * FROM vertices", "edges": "SELECT * FROM edges"}
SECRET = ("password", "passwd", "pwd", "passfile", "sslpassword", "token")


def read_sql(
    url: str,
    vertices_query: str | None = None,
    edges_query: str | None = None,
    rules: Rules = DEFAULTS,
) -> NetworkParts:
    """Read a network from the results of two queries; none for edges if there are references."""
    with _connected(url) as (connection, shown, name):
        meanings: tuple[str, ...] = VERTEX_MEANINGS
        if rules.references or (vertices_query and not edges_query):
            meanings += ("references",)
        query = vertices_query or _default(connection, "vertices", shown)
        vertices = _table(connection, query, "vertices", meanings, rules, shown)
        if not vertices.columns["id"]:
            raise VHEError(f"{shown}: the query of vertices returned no rows.")
        edges = None
        if edges_query or "references" not in vertices.columns:
            query = edges_query or _default(connection, "edges", shown)
            edges = _table(connection, query, "edges", EDGE_MEANINGS, rules, shown)
        return network_of(vertices, edges, rules, name)


def _default(connection: Any, table: str, shown: str) -> str:
    """Return the query of all rows of a table, which must exist."""
    import sqlalchemy

    about = sqlalchemy.inspect(connection)
    names = [*about.get_table_names(), *about.get_view_names()]
    if table not in names:
        raise VHEError(
            f"{shown} has no table {table}: give --{table}-query SQL (tables found: "
            f"{listed(sorted(names))})."
        )
    return DEFAULT[table]


def _table(
    connection: Any, query: str, what: str, meanings: tuple[str, ...], rules: Rules, shown: str
) -> Table:
    """Return the columns of a query's result."""
    options = {"stream_results": True, "no_parameters": True, "yield_per": CHUNK}
    result = connection.execution_options(**options).exec_driver_sql(query)
    if not result.returns_rows:
        raise VHEError(f"{shown}: the query of {what} returns no rows; give a SELECT.")
    names = list(result.keys())
    where = f"{shown}, query of {what}"
    found = find_columns(names, meanings, where, rules)
    columns: dict[str, list[Any]] = {meaning: [] for meaning in found}
    places = [(meaning, [names.index(name) for name in own]) for meaning, own in found.items()]
    for rows in result.partitions(CHUNK):
        for row in rows:
            for meaning, own in places:
                value = combined([row[k] for k in own], meaning)
                columns[meaning].append(_plain(value, meaning not in (*OPTIONAL, "text")))
    notes = tuple(column_notes(f"query of {what}", names, found))
    return Table(where, f"query of {what}", columns, found, None, notes)


def _plain(value: Any, is_id: bool) -> Any:
    """Return a value of a type that ids, labels and references have."""
    if value is None or isinstance(value, str | int | float | list):
        return value
    if not is_id and isinstance(value, bytes | memoryview):
        return bytes(value)
    return str(value)  # UUID, Decimal, date


@contextmanager
def _connected(url: str) -> Iterator[tuple[Any, str, str]]:
    """Yield a connection, the database in messages, and the name of the network."""
    try:
        import sqlalchemy
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
    except ImportError:
        raise VHEError("reading a database needs SQLAlchemy; install vhe[sql].") from None
    try:
        parsed = sqlalchemy.make_url(url)
    except (ArgumentError, ValueError):
        raise VHEError(
            "the database URL cannot be parsed; write it as postgresql://user@host/database or "
            "sqlite:///file.db (special characters in a password as %XX)."
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    backend = parsed.get_backend_name()
    secrets = {str(v) for k, v in parsed.query.items() if k.lower() in SECRET}
    secrets |= {str(parsed.password)} if parsed.password else set()
    database = parsed.database or ""
    shown = f"{backend}://{parsed.host or ''}/{database}"
    if backend == "sqlite" and database and database != ":memory:":
        file = Path(database)
        if not file.is_file():
            raise VHEError(f"{file} does not exist; check the path.")
        read_only = f"file:{quote(str(file.resolve()))}"
        query = {"mode": "ro", "uri": "true"}
        parsed = parsed.set(database=read_only, query=query)
        shown = str(file)

    def sentence(error: BaseException) -> str:
        lines = str(getattr(error, "orig", None) or error).strip().splitlines()
        text = " ".join(lines[0].split()) if lines else type(error).__name__
        for secret in secrets:
            for spelling in (secret, quote(secret, safe=""), quote_plus(secret)):
                text = text.replace(spelling, "***")
        return shortened(text.rstrip("."), 300)

    try:
        engine = sqlalchemy.create_engine(parsed)
    except NoSuchModuleError:
        raise VHEError(
            f"SQLAlchemy has no dialect for {backend}; install one (for DuckDB: duckdb-engine)."
        ) from None
    except ImportError as error:
        raise VHEError(
            f"{shown}: the driver {error.name or parsed.drivername} is not installed; install "
            "vhe[sql], or the driver of this database."
        ) from None
    except (SQLAlchemyError, ValueError, TypeError) as error:
        raise VHEError(f"{shown}: {sentence(error)}.") from None
    name = Path(database).stem or backend
    try:
        with engine.connect() as connection:
            if backend == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            yield connection, shown, name
    except VHEError:
        raise
    except SQLAlchemyError as error:
        raise VHEError(f"{shown}: {sentence(error)}.") from None
    except UnicodeError as error:  # also of SQLite's own message about a damaged schema
        raise VHEError(f"{shown} is damaged, or its text is not UTF-8: {error}.") from None
    finally:
        engine.dispose()

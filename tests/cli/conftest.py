"""A small network in two tables, for the tests of commands."""

import pytest

TOPICS = ("Cats purr on warm sofas", "trains run on steel rails", "bread rises in hot ovens")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """--vertices and --edges of 30 vertices in three rings, one per topic; ids 100 to 129."""
    folder = tmp_path_factory.mktemp("network")
    vertices, edges = folder / "vertices.csv", folder / "edges.csv"
    texts = [f"{100 + k},{TOPICS[k // 10]} {'ab'[k % 2]}{k % 5}" for k in range(30)]
    vertices.write_text("id,text\n" + "\n".join(texts) + "\n")
    rings = [
        f"{100 + 10 * t + k},{100 + 10 * t + (k + step) % 10}"
        for t in range(3)
        for k in range(10)
        for step in (1, 2)
    ]
    edges.write_text("source,target\n" + "\n".join(rings) + "\n")
    return ["--vertices", str(vertices), "--edges", str(edges)]

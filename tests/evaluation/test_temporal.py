"""The dated network of package changelogs, and that its future is not trained on."""

import gzip
import runpy
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "temporal.py"
STATUS = """\
Package: tool-a
Description: a tool
 for testing

Package: lib-b
Description: a library

Package: lib-c1
Description: another library

Package: tool-a-doc
Description: shares a changelog

Package: file
Description: an English word
"""
CHANGELOG = """\
tool-a (2) unstable; urgency=low

  * Use lib-c1 and lib-b, read a file.

 -- A Person <a@example.org>  Mon, 02 Jan 2012 00:00:00 +0000

tool-a (1) unstable; urgency=low

  * Depend on lib-b and on tool-a itself.

 -- A Person <a@example.org>  Fri, 01 Jan 2010 00:00:00 +0000
"""


@pytest.fixture
def program() -> dict:
    return runpy.run_path(str(PROGRAM))


@pytest.fixture
def dated(program, tmp_path):
    (tmp_path / "status").write_text(STATUS)
    for name in ("tool-a", "tool-a-doc"):  # both have the same changelog: it is read once
        folder = tmp_path / "doc" / name
        folder.mkdir(parents=True)
        (folder / "changelog.Debian.gz").write_bytes(gzip.compress(CHANGELOG.encode()))
    return program["changelog_network"](tmp_path / "status", tmp_path / "doc")


def test_a_link_begins_with_the_first_entry_that_names_the_other_package(dated) -> None:
    network, times = dated
    links = {
        (network.ids[a], network.ids[b]): str(np.datetime64(int(time), "s"))[:4]
        for (a, b), time in zip(network.edges, times, strict=True)
    }
    assert links == {("lib-b", "tool-a"): "2010", ("lib-c1", "tool-a"): "2012"}
    assert "a tool\n for testing" in network.texts


def test_the_future_is_held_out(dated) -> None:
    network, times = dated
    train, test = network.split_edges(0.5, time=times)
    assert [[network.ids[k] for k in link] for link in train.links] == [["lib-b", "tool-a"]]
    assert [[network.ids[k] for k in pair] for pair in test.pairs] == [["lib-c1", "tool-a"]]

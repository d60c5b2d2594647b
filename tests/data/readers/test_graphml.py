"""GraphML: a network is read as it was written, and errors name the file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers.graphml import write_graphml
from vhe.errors import VHEError

Put = Callable[..., dict[str, Path]]  # the fixture


def test_graphml_round_trip(tmp_path: Path, network: TextNetwork) -> None:
    path = tmp_path / "g.graphml"
    write_graphml(path, network.with_edges(network.edges, directed=True))
    read = TextNetwork.from_files(path)
    assert (read.ids, read.texts, read.labels) == (network.ids, network.texts, network.labels)
    assert read.edges.tolist() == [[0, 1], [2, 2], [3, 2]]  # networkx sorts them by source
    assert read.directed
    assert read.name == "g"


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>{doctype}
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="abstract" attr.type="string"/>
<graph edgedefault="undirected">
<node id="a"><data key="d0">red fox</data></node>
<node id="b"/>
{more}
<edge source="a" target="b"/>
</graph></graphml>
"""


def test_graphml_attributes_with_synonymous_names(put: Put) -> None:
    (path,) = put(g_graphml=GRAPHML.format(doctype="", more="")).values()
    read = TextNetwork.from_files(path)
    assert read.texts == ("red fox", "")
    assert read.edges.tolist() == [[0, 1]]
    assert not read.directed


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("<graphml><graph></graphml>", r"g\.graphml:1: not XML \(mismatched tag\)"),
        ("<graphml/>", "contains no nodes"),
        (
            GRAPHML.format(doctype='<!DOCTYPE x [<!ENTITY e "e">]>', more=""),
            r"g\.graphml:1: a DOCTYPE is not supported",
        ),
        (
            GRAPHML.format(doctype="", more='<node id="a"/>'),
            r"g\.graphml:7: duplicate id 'a' \(first on line 5\)",
        ),
        (
            GRAPHML.format(doctype="", more='<edge source="a" target="q"/>'),
            r"g\.graphml:7: unknown vertex id 'q'",
        ),
        (GRAPHML.format(doctype="", more="<node/>"), r"g\.graphml:7: the node has no id"),
        (
            GRAPHML.format(doctype="", more="").replace("abstract", "weight"),
            "no column for the text; .* found: 'weight'",
        ),
    ],
)
def test_graphml_errors_name_the_line(put: Put, content: str, sentence: str) -> None:
    (path,) = put(g_graphml=content).values()
    with pytest.raises(VHEError, match=sentence):
        TextNetwork.from_files(path)

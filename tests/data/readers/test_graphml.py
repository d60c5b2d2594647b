"""GraphML: a network is read as it was written, and errors name the file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers.graphml import write_graphml
from vhe.data.sources import read
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


GEXF = """<?xml version="1.0" encoding="ISO-8859-1"?>
<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="directed">
<attributes class="node"><attribute id="0" title="Category" type="string"/></attributes>
<nodes><node id="a" label="größer"><attvalues><attvalue for="0" value="x"/></attvalues></node>
<node id="b" label="brown fox"/></nodes>
<edges><edge id="0" source="a" target="b"/></edges></graph></gexf>
"""


def test_gexf(put: Put) -> None:
    (path,) = put(g_gexf=GEXF.encode("latin-1")).values()
    network = read(path)
    assert network.ids == ("a", "b")
    assert network.texts == ("größer", "brown fox")
    assert network.labels == ("x", None)
    assert network.edges.tolist() == [[0, 1]]
    assert network.directed


def test_text_attributes_are_joined_and_unknown_ends_skipped(put: Put) -> None:
    more = '<edge source="a" target="q"/>'
    content = GRAPHML.format(doctype="", more=more).replace("abstract", "Note")
    (path,) = put(g_graphml=content).values()
    network = read(path, text="note", on_unknown="skip")
    assert network.texts == ("red fox", "")
    assert network.edges.tolist() == [[0, 1]]
    assert network.notes[1].startswith("1 edge with unknown ids skipped (first: 'q' at ")

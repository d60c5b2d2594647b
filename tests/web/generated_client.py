"""A session with a generated client; run by `test_generated_client` in its own environment.

python generated_client.py URL TOKEN
"""

import sys

from vhe_client import AuthenticatedClient, models
from vhe_client.api.default import (
    add_links,
    add_vertices,
    decide,
    decisions,
    embed_text,
    embedding,
    find_vertices,
    health,
    layout,
    links,
    map_,
    nearest,
    network,
    pair,
    path,
    ready,
    reload,
    remove_vertex,
    review_precision,
    suggestions,
    undo,
    vertex,
    vertex_suggestions,
)

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)


def ask(route, expected, *arguments, **values):
    """The parsed response of a route, which must have the declared type."""
    found = route.sync_detailed(*arguments, client=client, **values)
    assert found.status_code == 200, (route.__name__, found.content)
    assert isinstance(found.parsed, expected), (route.__name__, type(found.parsed))
    return found.parsed


summary = ask(network, models.Network)
assert summary.vertices == 60
assert len(ask(map_, models.Map).ids) == 60
assert ask(layout, models.LayoutState).layout == "final"
assert ask(find_vertices, models.Vertex, id="v3").number == 3
assert ask(find_vertices, models.Found, q="t2w4", limit=3).total > 3
assert ask(vertex, models.Vertex, 3).id == "v3"
assert ask(links, models.Links, 3).total == len(ask(vertex, models.Vertex, 3).links)
assert len(ask(embedding, models.Embedding, 3).embedding) == summary.dimensions
assert len(ask(nearest, models.Nearest, 3, k=4).nearest) == 4
best = ask(vertex_suggestions, models.VertexSuggestions, 3, k=2).links[0]
assert 0 < ask(pair, models.PairExplanation, 3, best.number).probability < 1
assert ask(path, models.Path, 3, 3).length == 0
text = models.NewText(text="t4w1 t4w2 t4w3")
assert ask(embed_text, models.EmbeddedText, body=text).known == 3

first = ask(suggestions, models.Suggestions, state="open", limit=5).items[0]
ends = first.source.number, first.target.number
accepted = models.DecisionState(state=models.DecisionStateState.ACCEPTED)
assert ask(decide, models.SuggestedLink, *ends, body=accepted).state == "accepted"
assert [d.state for d in ask(decisions, list)] == ["accepted"]
assert ask(review_precision, models.Precision).reviewed == 1
assert ask(undo, models.SuggestedLink, *ends).state == "open"

new = models.NewVertices(
    vertices=[models.NewVertex(id="new", text="t4w1 t4w2")], links=[["new", "v3"]]
)
added = ask(add_vertices, models.Changed, body=new).vertices
assert [(v.id, v.number) for v in added] == [("new", 60)]
ask(add_links, models.Changed, body=models.NewLinks(links=[["new", "v5"]]))
assert ask(links, models.Links, 60).total == 2
ask(remove_vertex, models.Changed, 60)
missing = vertex.sync_detailed(60, client=client)
assert (missing.status_code, type(missing.parsed)) == (404, models.Error)
ask(reload, models.Reloaded)
assert ask(health, models.Health).status == "ok"
assert ask(ready, models.Health).status == "ready"

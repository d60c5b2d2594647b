"""Textual networks made from what is installed, for measurements that no setting was chosen on.

perl        Perl modules with their documentation, linked by `use` and L<...>
headers     C++ headers of torch with their comments, linked by #include
debian-core the packages of `debian` with at least 12 links among themselves (dense)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import vhe
from vhe.data.network import TextNetwork

LEAST_LINKS = 12


def perl_modules(folders: Iterable[str] = ("/usr/share/perl", "/usr/lib")) -> TextNetwork:
    texts = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.pm")):
            if match := re.search(r"^package\s+([\w:]+)", text := path.read_text("latin-1"), re.M):
                texts.setdefault(match[1], text)
    link = re.compile(r"^use\s+([\w:]+)|L<(?:[^|>]*\|)?([\w:]+)[/>]", re.M)
    links = [(name, a or b) for name, text in texts.items() for a, b in link.findall(text)]
    pod = re.compile(r"^=[a-z]\w*.*?(?=^=cut|\Z)", re.M | re.S)
    documentation = {k: link.sub(" ", " ".join(pod.findall(v))) for k, v in texts.items()}
    return _network("perl", documentation, links)


def c_headers(most: int = 4000) -> TextNetwork:
    import torch

    root = Path(torch.__file__).parent / "include"
    paths = [p for p in sorted(root.rglob("*.h")) if "/ops/" not in p.as_posix()][:most]
    texts = {p.relative_to(root).as_posix(): p.read_text(errors="replace") for p in paths}
    include = re.compile(r"^\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", re.M)
    links = [(name, other) for name, text in texts.items() for other in include.findall(text)]
    return _network("headers", {k: include.sub(" ", v) for k, v in texts.items()}, links)


def debian_core() -> TextNetwork:
    import networkx

    network = vhe.load("debian")
    graph = networkx.Graph(network.links.tolist())
    graph.remove_edges_from(networkx.selfloop_edges(graph))
    core = np.array(sorted(networkx.k_core(graph, LEAST_LINKS)))
    return network.subnetwork(core)


NETWORKS: dict[str, Callable[[], TextNetwork]] = {
    "perl": perl_modules,
    "headers": c_headers,
    "debian-core": debian_core,
}


def load(name: str) -> TextNetwork:
    """One of these networks, or a dataset of `vhe.load`."""
    return NETWORKS[name]() if name in NETWORKS else vhe.load(name)


def _network(name: str, texts: dict[str, str], links: list[tuple[str, str]]) -> TextNetwork:
    number = {vertex: k for k, vertex in enumerate(texts)}
    pairs = sorted({tuple(sorted((a, b))) for a, b in links if a in number and b in number})
    rows = np.array([(number[a], number[b]) for a, b in pairs if a != b]).reshape(-1, 2)
    linked = np.unique(rows)
    network = TextNetwork([*texts], [*texts.values()], rows, name=name, directed=False)
    return network.subnetwork(linked)

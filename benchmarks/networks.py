"""Textual networks made from what is installed, for measurements that no setting was chosen on.

perl          Perl modules with their documentation, linked by `use` and L<...>
headers       C++ headers of torch with their comments, linked by #include
debian-core   the packages of `debian` with at least 12 links among themselves (dense)
imports-core  modules of networkx, pandas, scipy and scikit-learn with their docstrings, linked by
              imports; at least 12 links (dense)
small-NAME    100 to 300 vertices around a random one of the dataset NAME; one network per seed
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

import vhe
from vhe.data.network import TextNetwork

LEAST_LINKS = 12
SMALL = "small-"
PACKAGES = ("networkx", "pandas", "scipy", "sklearn")  # of imports-core


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
    return _core(vhe.load("debian"))


def imports_core() -> TextNetwork:
    texts, links = {}, []
    root = Path(np.__file__).parents[1]  # where packages are installed
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):
            continue
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
        texts[name] = " ".join(text for text in found if text)
        package = name.split(".") if parts[-1] == "__init__" else name.split(".")[:-1]
        links += [(name, other) for other in _imported(tree, package)]
    return _core(_network("imports-core", {k: v for k, v in texts.items() if v}, links))


def _imported(tree: ast.Module, package: list[str]) -> Iterator[str]:
    """Names of the modules that a module of a package imports, and of what it takes from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def neighbourhood(network: TextNetwork, seed: int) -> TextNetwork:
    """The vertices around a random one, 100 to 300 of them, and the links among them."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(100, 301))
    ends = np.concatenate([network.links, network.links[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first = np.searchsorted(ends[:, 0], np.arange(len(network) + 1))
    while True:
        chosen = [int(rng.choice(np.flatnonzero(network.degrees > 0)))]
        seen = set(chosen)
        for vertex in chosen:  # grows while it is read
            if len(chosen) >= size:
                break
            for other in rng.permutation(ends[first[vertex] : first[vertex + 1], 1]).tolist():
                if other not in seen and len(chosen) < size:
                    seen.add(other)
                    chosen.append(other)
        if len(chosen) >= 100:
            return network.subnetwork(np.array(chosen))


NETWORKS: dict[str, Callable[[], TextNetwork]] = {
    "perl": perl_modules,
    "headers": c_headers,
    "debian-core": debian_core,
    "imports-core": imports_core,
}


def load(name: str) -> Callable[[int], TextNetwork]:
    """One of these networks, or a dataset of `vhe.load`, as a function of the seed."""
    if name.startswith(SMALL):
        whole = vhe.load(name.removeprefix(SMALL))
        return lambda seed: neighbourhood(whole, seed)
    network = NETWORKS[name]() if name in NETWORKS else vhe.load(name)
    return lambda seed: network


def _core(network: TextNetwork) -> TextNetwork:
    import networkx

    graph = networkx.Graph(network.links.tolist())
    graph.remove_edges_from(networkx.selfloop_edges(graph))
    return network.subnetwork(np.array(sorted(networkx.k_core(graph, LEAST_LINKS))))


def _network(name: str, texts: dict[str, str], links: list[tuple[str, str]]) -> TextNetwork:
    number = {vertex: k for k, vertex in enumerate(texts)}
    pairs = sorted({tuple(sorted((a, b))) for a, b in links if a in number and b in number})
    rows = np.array([(number[a], number[b]) for a, b in pairs if a != b]).reshape(-1, 2)
    linked = np.unique(rows)
    network = TextNetwork([*texts], [*texts.values()], rows, name=name, directed=False)
    return network.subnetwork(linked)

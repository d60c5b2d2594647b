"""The See Also sections of installed packages as a network, without a download.

Vertices are the public functions and classes of numpy, scipy, scikit-learn, networkx and pandas;
texts are the first words of their docstrings, labels their subpackages, edges See Also references.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import pkgutil
import re
import textwrap
import warnings
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from vhe.data.checks import edge_indices
from vhe.data.parts import NetworkParts

PACKAGES = ("numpy", "scipy", "sklearn", "networkx", "pandas")
SHORT = {"np": "numpy", "sp": "scipy", "nx": "networkx", "pd": "pandas"}
# Not public: tests, vendored and build code, experimental switches.
CLOSED = frozenset({"tests", "conftest", "experimental", "externals", "distutils", "f2py", "setup"})
INTERNAL = frozenset(
    {"numpy.core", "pandas.core", "pandas.compat", "pandas.io", "pandas.util"}
    | {"scipy.special.cython_special"}
)

SECTION = re.compile(r"^(?P<title>\S[^\n]*)\n[-=]{3,}[ ]*$\n?", re.M)
ROLE = re.compile(r":\w+:`~?([^`<]*)`")
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
SIGNATURE = re.compile(r"[\w.]+\(.*\)(\s*->.*)?", re.S)


def read_seealso(words: int | None = 60) -> NetworkParts:
    """Build the network from the installed packages; vertices are sorted by name.

    Parameters
    ----------
    words : int or None
        Maximum number of words of each text; None for the whole docstring.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            modules = {module.__name__: module for name in PACKAGES for module in _modules(name)}
            found = _objects(modules)
    home: dict[str, str] = {}  # each public name of an object -> its shortest name
    objects: dict[str, Any] = {}
    for thing, names in found:
        best = min(names, key=lambda name: (name.count("."), len(name), name))
        objects[best] = thing
        home.update(dict.fromkeys(names, best))
    texts, references = {}, []
    for name in sorted(objects):
        document = inspect.cleandoc(objects[name].__doc__)
        text = " ".join(_prose(document).split()[:words])
        if text:
            texts[name] = text
            references += [(name, other) for other in _references(document)]
    last: dict[tuple[str, str], list[str]] = {}  # (package, last part) -> names with this ending
    for name in texts:
        last.setdefault((name.partition(".")[0], name.rpartition(".")[2]), []).append(name)
    edges: dict[tuple[str, str], None] = {}
    for name, reference in references:
        target = _resolve(reference, name, objects[name], home, last)
        if target in texts and target != name:
            edges[name, target] = None
    ids = list(texts)
    return NetworkParts(
        ids,
        list(texts.values()),
        edge_indices(ids, [e[0] for e in edges], [e[1] for e in edges], "edge {}".format),
        [_subpackage(name, objects[name], modules) for name in ids],
        directed=True,
        name="seealso",
    )


def _modules(name: str) -> Iterator[ModuleType]:
    """Yield the public modules of a package that can be imported."""
    if name in INTERNAL or any(p.startswith("_") or p in CLOSED for p in name.split(".")):
        return
    try:
        module = import_module(name)
    except (Exception, SystemExit):
        return
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        yield from _modules(info.name)


def _objects(modules: dict[str, ModuleType]) -> list[tuple[Any, list[str]]]:
    """Return the documented functions and classes, each with all its public names."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for place, module in modules.items():
        package = place.partition(".")[0]
        own = [x for x, thing in vars(module).items() if getattr(thing, "__module__", "") == place]
        listed = getattr(module, "__all__", None)
        if hasattr(module, "__path__"):  # a package exports what its modules define
            names = [*(dir(module) if listed is None else listed), *own]
        else:
            names = list(own if listed is None else listed)
        for name in dict.fromkeys(names):
            thing = getattr(module, name, None)
            if name.startswith("_") or not callable(thing) or inspect.ismodule(thing):
                continue
            if not isinstance(getattr(thing, "__name__", None), str):
                continue  # an instance, such as a distribution of scipy.stats
            if not isinstance(thing.__doc__, str):
                continue
            # A ufunc has no __module__: it belongs to the first package that exports it.
            first = found.get(id(thing), (None, [place]))[1][0]
            origin = getattr(thing, "__module__", None) or first
            if origin.partition(".")[0] == package:
                found.setdefault(id(thing), (thing, []))[1].append(f"{place}.{name}")
    return list(found.values())


def _sections(document: str) -> Iterator[tuple[str, str]]:
    """Yield (title, body) of a docstring in numpy's style; the first title is empty."""
    title, start = "", 0
    for head in SECTION.finditer(document):
        yield title, document[start : head.start()]
        title, start = head["title"].strip().rstrip(":").lower(), head.end()
    yield title, document[start:]


def _prose(document: str) -> str:
    """Return the docstring without references, signature and code examples."""
    paragraphs = re.split(r"\n\s*\n", document)
    while paragraphs and SIGNATURE.fullmatch(paragraphs[0].strip()):
        del paragraphs[0]
    document = "\n\n".join(paragraphs)
    omitted = ("see also", "references")
    bodies = [body for title, body in _sections(document) if title not in omitted]
    lines, in_code = [], False
    for line in "\n".join(bodies).split("\n"):
        # The output of an example ends at the next blank line.
        in_code = line.lstrip().startswith(">>>") or (in_code and bool(line.strip()))
        if not in_code:
            lines.append(line)
    return "\n".join(lines)


def _references(document: str) -> Iterator[str]:
    """Yield the names that the See Also section lists."""
    for title, body in _sections(document):
        if title != "see also":
            continue
        for line in textwrap.dedent(body).split("\n"):
            if not line or line[0].isspace():  # an indented line describes the name above
                continue
            listed = re.split(r"\s*:(?:\s|$)", ROLE.sub(r"\1", line), maxsplit=1)[0]
            for name in listed.split(","):
                plain = name.strip().strip("`").lstrip("~").removesuffix("()")
                if DOTTED.fullmatch(plain):
                    yield plain


def _resolve(
    reference: str,
    name: str,
    thing: Any,
    home: dict[str, str],
    last: dict[tuple[str, str], list[str]],
) -> str | None:
    """Return the vertex a reference means: the name in the innermost enclosing module."""
    first, dot, rest = reference.partition(".")
    full = SHORT.get(first, first) + dot + rest
    if full in home:
        return home[full]
    for place in (name.rpartition(".")[0], getattr(thing, "__module__", None) or ""):
        while place:
            if f"{place}.{reference}" in home:
                return home[f"{place}.{reference}"]
            place = place.rpartition(".")[0]
    elsewhere = last.get((name.partition(".")[0], reference), [])
    return elsewhere[0] if len(elsewhere) == 1 else None


def _subpackage(name: str, thing: Any, modules: dict[str, ModuleType]) -> str:
    """Return the innermost package of a name, or of its definition if the root exports it."""
    root = name.partition(".")[0]
    for place in (name, str(getattr(thing, "__module__", None) or root)):
        while place != root and place.startswith(root):
            place = place.rpartition(".")[0]
            if place != root and hasattr(modules.get(place), "__path__"):
                return place
    return root

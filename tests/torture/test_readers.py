"""Any content of a file is read, or refused by a one-line error that names the file."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vhe.data.network import TextNetwork
from vhe.errors import VHEError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
def test_fuzzed_inputs(
    run_program: Callable[..., dict[str, Any]],
    part: int,
    count: int,
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    figures |= run_program("fuzz.py", tmp_path, count, 1 + part)
    assert figures["problems"] == []
    assert (figures["uncaught"], figures["crashes"], figures["hangs"]) == (0, 0, 0)
    assert figures["read"] > 0 < figures["refused"]


@needs_fork
def test_hard_inputs(
    run_program: Callable[..., dict[str, Any]],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    figures |= run_program("hard.py", tmp_path, times(1, 100))
    assert figures["problems"] == []


# --- unusual but well-formed files

any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
ODD = ["", " ", "\ufeff", '"', "a,b", "\r\n", "\u202eab", "👩‍👩‍👧", "\x85"]
odd_text = any_text | st.sampled_from(ODD)
ids = odd_text | st.sampled_from(["a", "b", "c"])
rows = st.lists(st.tuples(ids, odd_text), max_size=6)
pairs = st.lists(st.tuples(ids, ids), max_size=6)
quick = settings(max_examples=60, deadline=None)


def assert_read_or_refused(read: Callable[[], Any], where: Path) -> None:
    message = ""
    try:
        network = read()
    except VHEError as error:
        message = str(error)
    assert (str(where) in message and "\n" not in message) or len(network.ids) > 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@quick
@given(vertices=rows, edges=pairs, bom=st.booleans(), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_csv(vertices: list[Any], edges: list[Any], bom: bool, end: str, folder: Path) -> None:
    for name, head, body in (("v", ("id", "text"), vertices), ("e", ("source", "target"), edges)):
        content = io.StringIO()
        csv.writer(content, lineterminator=end).writerows([head, *body])
        data = ("\ufeff" * bom + content.getvalue()).encode()
        (folder / f"{name}.csv").write_bytes(data)
    assert_read_or_refused(
        lambda: TextNetwork.from_files(folder / "v.csv", folder / "e.csv"), folder
    )


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | odd_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
)
documents = st.lists(
    st.fixed_dictionaries({"id": ids | anything, "text": odd_text | anything}) | anything,
    max_size=5,
)


@quick
@given(vertices=documents, edges=pairs, ascii=st.booleans())
def test_any_jsonl(vertices: list[Any], edges: list[Any], ascii: bool, folder: Path) -> None:
    lines = [json.dumps(document, ensure_ascii=ascii) for document in vertices]
    (folder / "v.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lines = [json.dumps({"source": a, "target": b}) for a, b in edges]
    (folder / "e.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert_read_or_refused(
        lambda: TextNetwork.from_files(folder / "v.jsonl", folder / "e.jsonl"), folder
    )


numbers = st.integers(-1, 7).map(str) | odd_text


@quick
@given(texts=st.lists(odd_text, max_size=6), edges=st.lists(st.lists(numbers, max_size=3)))
def test_any_cane(texts: list[str], edges: list[list[str]], folder: Path) -> None:
    (folder / "data.txt").write_text("\n".join(texts), encoding="utf-8", newline="")
    lines = "\n".join(map(" ".join, edges))
    (folder / "graph.txt").write_text(lines, encoding="utf-8", newline="")
    assert_read_or_refused(lambda: TextNetwork.from_folder(folder), folder)


@quick
@given(content=any_text | st.lists(st.sampled_from(
    ["<graphml>", "</graphml>", "<graph edgedefault='directed'>", "</graph>", "<node id='a'>",
     "<node id='b'/>", "</node>", "<edge source='a' target='b'/>", "<edge/>", "<hyperedge/>",
     "<key id='t' for='node' attr.name='text' attr.type='string'/>", "<data key='t'>", "</data>",
     "<port name='p'/>", "&amp;", "text", "<?xml version='1.0' encoding='utf-16'?>", "<!-- -->"]
), max_size=12).map("".join))  # fmt: skip
def test_any_graphml(content: str, folder: Path) -> None:
    (folder / "g.graphml").write_text(content, encoding="utf-8", newline="")
    assert_read_or_refused(lambda: TextNetwork.from_files(folder / "g.graphml"), folder)

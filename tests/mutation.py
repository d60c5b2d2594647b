"""Mutation testing of graph/ and pair/: changes of the code that no test notices.

Each mutant changes one operator, comparison, number or condition; the tests of its package run
until one fails. Prints the survivors and their share.

    python tests/mutation.py --count 200 --seed 0 --only pair/filtering
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("graph", "pair")
TIMEOUT = 600  # seconds; a mutant that never ends was noticed
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.Mod: ast.Mult},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.And: ast.Or, ast.Or: ast.And},
}


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that can be changed, in a fixed order; annotations and assertions cannot."""
    if isinstance(tree, ast.BinOp | ast.BoolOp) and type(tree.op) in SWAPPED:
        yield tree
    if isinstance(tree, ast.Compare) and type(tree.ops[0]) in SWAPPED:
        yield tree
    if isinstance(tree, ast.If | ast.IfExp | ast.While):
        yield tree
    if isinstance(tree, ast.Constant) and isinstance(tree.value, bool | int | float):
        yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns") or isinstance(tree, ast.Assert):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_type_checking(child):
                yield from places(child)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def change(node: ast.AST) -> None:
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[assignment]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant):
        old = node.value
        node.value = not old if isinstance(old, bool) else old + 1  # type: ignore[operator]


def mutant(source: str, number: int) -> tuple[str, int, str, str]:
    """The changed source, the line, and the changed expression before and after."""
    tree = ast.parse(source)
    node = list(places(tree))[number]
    shown = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
    before = ast.unparse(shown)
    change(node)
    shown = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
    after = ast.unparse(shown)
    line = getattr(node, "lineno", 0)
    return ast.unparse(ast.fix_missing_locations(tree)), line, before, after


def survives(source: Path, package: str, module: str) -> bool:
    """Whether all tests pass: those of the module first, which fail soonest."""
    own = ROOT / "tests" / package / f"test_{module}.py"
    for tests in ([own] if own.exists() else []) + [ROOT / "tests" / package]:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, "-o", f"pythonpath={source}", str(tests)],
                cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(source)},
                capture_output=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode:
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the choice")
    parser.add_argument("--only", default="", help="part of the path, such as pair/filtering")
    options = parser.parse_args()
    files = [
        path
        for package in PACKAGES
        for path in sorted((ROOT / "src" / "vhe" / package).glob("*.py"))
        if options.only in path.as_posix()
    ]
    every = [
        (path, number)
        for path in files
        for number in range(len(list(places(ast.parse(path.read_text(encoding="utf-8"))))))
    ]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        for done, (path, number) in enumerate(chosen, start=1):
            original = path.read_text(encoding="utf-8")
            code, line, before, after = mutant(original, number)
            target = source / path.relative_to(ROOT / "src")
            target.write_text(code, encoding="utf-8")
            if survives(source, path.parent.name, path.stem):
                survivors += 1
                where = path.relative_to(ROOT)
                print(f"survived: {where}:{line}: {before} -> {after}", flush=True)
            target.write_text(original, encoding="utf-8")
            if done % 10 == 0:
                print(f"{done} of {len(chosen)} mutants, {survivors} survived", flush=True)
    noticed = len(chosen) - survivors
    print(f"{noticed} of {len(chosen)} mutants noticed ({len(every)} possible)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

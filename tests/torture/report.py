"""Write docs/reliability.md from what `make torture` measured (results/reliability/*.json)."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ROWS = [
    ("killed_at_random_moments", "`kill -9` at random moments of `vhe fit`, then `--resume`",
     "{identical} of {runs} runs end with the same bits as an undisturbed one ({kills} kills), "
     "{unreadable} unreadable checkpoints"),
    ("disk_full", "the disk is full from a random step on",
     "{survived} of {rounds}: one sentence, the last checkpoint loads, `--resume` gives the same "
     "bits"),
    ("damage[truncated]", "a file of a model folder is cut off",
     "{refused} of {damaged} refused"),
    ("damage[one_bit_flipped]", "one bit of a model folder is flipped",
     "{refused} of {damaged} refused"),
    ("attacks", "model folders made to do harm (pickles, links, paths that leave the folder, "
     "headers that claim terabytes)",
     "{refused} of {attacks} refused, nothing executed or written; at most {slowest_seconds} s of "
     "work and {most_megabytes} MB"),
    ("fuzzed_inputs", "mutated files of every input format",
     "{inputs:,} files: {uncaught} uncaught exceptions, {crashes} crashes, {hangs} hangs over 5 s; "
     "{read:,} read, {refused:,} refused with one sentence"),
    ("hard_inputs", "inputs of {megabytes} MB that are hard to read (one line, deep nests, entity "
     "bombs)",
     "{inputs} read or refused as they should be; at most {slowest_seconds} s and "
     "{most_megabytes} MB"),
    ("writers_and_readers", "two writers and two readers of one folder at once",
     "{written:,} written, {told:,} told that another writes, {read:,} read whole, 0 mixtures"),
    ("server_soak", "`vhe serve` asked right and wrong questions for {minutes} minutes",
     "{questions:,} questions, {failures} failures; memory {megabytes_warm} MB after a minute, "
     "{megabytes_at_the_end} MB at the end ({growth_percent:+} %)"),
]  # fmt: skip
HEAD = """# Reliability

Nothing that was learned is lost, and nothing in a file is ever executed. These figures were
written by `make torture`, which does in an hour what `make test` does in short; nothing here is
typed by hand.

| what happens | what comes of it |
|---|---|
"""
TAIL = """
What is promised, and what is not, is in [SECURITY.md](../SECURITY.md). The programs are in
`tests/torture/`; their seeds are fixed, so a failure can be repeated. Seconds are seconds of
work of the process, so that a busy machine changes nothing. Measured on {machine}.
"""


def page(results: Path) -> str:
    """The page; what was not measured has no row."""
    found: dict[str, dict[str, Any]] = {
        path.stem: json.loads(path.read_text()) for path in sorted(results.glob("*.json"))
    }
    rows = [
        f"| {what.format(**found[name])} | {came.format(**found[name])} |\n"
        for name, what, came in ROWS
        if name in found
    ]
    machines = sorted({str(figures["machine"]) for figures in found.values()})
    return HEAD + "".join(rows) + TAIL.format(machine="; ".join(machines))


if __name__ == "__main__":
    text = page(ROOT / "results" / "reliability")
    (ROOT / "docs" / "reliability.md").write_text(text, encoding="utf-8")
    print(text)

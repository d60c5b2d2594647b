"""Write docs/reliability.md from the figures of `make torture` (results/reliability/*.json)."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ROWS = [
    ("killed_at_random_moments", "`kill -9` at random moments of `vhe fit`, then `--resume`",
     "{identical} of {runs} runs end with the same bits as an undisturbed one ({kills} kills), "
     "{unreadable} unreadable checkpoints"),
    ("killed_while_writing", "`kill -9` of `vhe serve --writable` while four clients write",
     "{kills} kills: {lost} of {acknowledged:,} acknowledged writes lost, {unreadable} unreadable "
     "states"),
    ("disk_full", "the disk is full from a random training step on",
     "{survived} of {rounds}: one warning, training ends with the same bits, and so does a run "
     "resumed from the last complete checkpoint"),
    ("damage[truncated]", "a file of a model folder is truncated",
     "{refused} of {damaged} refused"),
    ("damage[one_bit_flipped]", "one bit of a model folder is flipped",
     "{refused} of {damaged} refused"),
    ("attacks", "malicious model folders (pickles, symbolic links, paths outside the folder, "
     "headers that claim terabytes)",
     "{refused} of {attacks} refused, nothing executed or written; at most {slowest_seconds} CPU "
     "seconds and {most_megabytes} MB"),
    ("fuzzed_inputs", "mutated files of every input format",
     "{inputs:,} files: {uncaught} uncaught exceptions, {crashes} crashes, {hangs} hangs over 5 s; "
     "{read:,} read, {refused:,} refused with one sentence"),
    ("hard_inputs", "inputs of {megabytes} MB that are hard to read (one line, deep nesting, "
     "entity expansion)",
     "{inputs} read or refused as expected; at most {slowest_seconds} CPU seconds and "
     "{most_megabytes} MB"),
    ("writers_and_readers", "two writers and two readers of one folder at the same time",
     "{written:,} writes, {refused:,} refused because another process was writing, {read:,} "
     "complete reads, 0 mixtures"),
    ("sibling_folders", "folders `m` and `m.b` written at the same time",
     "{lost} of {writes:,} writes of {pairs} pairs of folders lost"),
    ("server_soak", "valid and invalid requests to `vhe serve` for {minutes} minutes",
     "{questions:,} requests, {failures} failures; memory {megabytes_warm} MB after one minute, "
     "{megabytes_at_the_end} MB at the end ({growth_percent:+} %)"),
]  # fmt: skip
HEAD = """# Reliability

No fitted model is lost, and nothing in a file is ever executed. `make torture` writes these
figures in about an hour; `make test` runs the same tests with smaller counts.

| event | result |
|---|---|
"""
TAIL = """
[SECURITY.md](../SECURITY.md) says what is guaranteed and what is not. The programs are in
`tests/torture/`; their random seeds are fixed, so that a failure can be reproduced. CPU seconds do
not depend on the load of the machine. Measured on {machine}.
"""


def page(results: Path) -> str:
    """The page, with a row for each measurement that exists."""
    found: dict[str, dict[str, Any]] = {
        path.stem: json.loads(path.read_text()) for path in sorted(results.glob("*.json"))
    }
    rows = [
        f"| {event.format(**found[name])} | {result.format(**found[name])} |\n"
        for name, event, result in ROWS
        if name in found
    ]
    machines = sorted({str(figures["machine"]) for figures in found.values()})
    return HEAD + "".join(rows) + TAIL.format(machine="; ".join(machines))


if __name__ == "__main__":
    text = page(ROOT / "results" / "reliability")
    (ROOT / "docs" / "reliability.md").write_text(text, encoding="utf-8")
    print(text)

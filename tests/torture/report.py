"""Write docs/reliability.md from the figures of `make torture` (results/reliability/*.json)."""

import json
import re
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
    ("structural_fuzzing", "changed values, tables and rows of a model folder, right checksums",
     "{folders:,} folders: {tracebacks} tracebacks, {not_finite} with answers that are not finite, "
     "{crashes} crashes, {hangs} hangs; {refused:,} refused with one sentence, "
     "{answered:,} answer"),
    ("memory_sweep", "`vhe fit` with {limits} limits of address space, {least_mb} to {most_mb} MB "
     "beyond the libraries",
     "{succeeded} succeed, {sentences} end with one sentence and exit status 2, {killed} killed by "
     "the system; nothing else"),
    ("dask_faults", "`kill -9` of a worker or of the scheduler of Dask at a random moment of a fit",
     "{completed} of {workers_killed} fits with a killed worker complete with the embedding of an "
     "undisturbed one; {resumed} of {schedulers_killed} fits with a killed scheduler end with one "
     "sentence and complete with `--resume` (`python benchmarks/scale_kills.py`)"),
    ("starvation", "cheap requests while another client floods the expensive ones",
     "99 of 100 answered within {p99_milliseconds} ms ({cheap:,} cheap requests, {flood:,} "
     "expensive ones)"),
    ("server_soak", "valid and invalid requests, writes and reloads of `vhe serve`, by one client",
     "{minutes:.0f} minutes: {questions:,} requests, {writes:,} of them writes, {reloads} reloads, "
     "{failures} failures; memory {megabytes_warm} MB after a tenth of the time, "
     "{megabytes_at_the_end} MB at the end ({growth_percent:+} %)"),
]  # fmt: skip
PLANNED = {
    "killed_at_random_moments": ("runs", 200),
    "disk_full": ("rounds", 50),
    "fuzzed_inputs": ("inputs", 200_000),
    "structural_fuzzing": ("folders", 20_000),
    "sibling_folders": ("pairs", 200),
}
HEAD = """# Reliability

No fitted model is lost, and nothing in a file is ever executed. `make torture` measures these
figures in about an hour of CPU time, in parts that can be interrupted, and writes this page from
`results/reliability/`; `make test` runs the same tests with smaller counts.

| event | first edition | now |
|---|---|---|
"""
TAIL = """
[SECURITY.md](../SECURITY.md) says what is guaranteed and what is not. The programs are in
`tests/torture/`; their random seeds are fixed, so that a failure can be reproduced. CPU seconds do
not depend on the load of the machine. Measured on {machine}; each file of `results/reliability/`
names the commit that it measured.

## What does not change a result

`tests/test_invariance.py` checks:

- **Threads**: the same seed gives the same bits with one and two threads, for both models with the
  native kernels and for `VHE` without them. `PairVHE` without the kernels uses convolutions of
  torch, whose sums depend on the number of threads (differences of about 1e-7 after six steps).
- **Paths**: native kernels and torch agree to 1e-3 after four steps of training, not to the bit.
- **Order of vertices**: without training and with given strengths, cosines between the vertices of
  a permuted network agree to 0.02: the randomised SVD stops at a tolerance. Training draws by
  vertex number, so that a permuted network is trained on other draws.
- **Forks**: a process that is forked after a model was used answers and fits with the same bits,
  with one thread.
- **Ids**: strings, numbers, booleans, None, bytes and tuples of them survive saving and loading
  (`tests/storage/`); other ids are refused when the model is saved.
"""


def measurements(results: Path) -> dict[str, dict[str, Any]]:
    """The figures of each test; those of its parts are added, maxima are the largest."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(results.glob("*.json")):
        name = re.sub(r"\[\d+\]$", "", path.stem)
        figures = json.loads(path.read_text())
        if "told" in figures:  # its name in the first edition
            figures["refused"] = figures.pop("told")
        before = found.setdefault(name, {})
        for key, value in figures.items():
            if key not in before or not isinstance(value, int | float):
                before[key] = value
            elif key.startswith(("slowest", "most")):
                before[key] = max(before[key], value)
            else:
                before[key] += value
    return found


def page(results: Path) -> str:
    """The page, with a row for each measurement and what is still to be measured."""
    old, new = measurements(results / "first-edition"), measurements(results)

    def cell(found: dict[str, dict[str, Any]], name: str, result: str) -> str:
        try:
            known = {"writes": 0, "reloads": 0}  # that the first edition did not have
            return result.format(**(known | found[name])) if name in found else "not measured"
        except KeyError:  # measured by other figures then
            return "measured otherwise"

    rows = []
    for name, event, result in ROWS:
        known = new.get(name) or old.get(name)
        now = cell(new, name, result)
        key, planned = PLANNED.get(name, ("", 0))
        if name in new and new[name].get(key, planned) < planned:
            now += f" (so far; {planned:,} {key} are planned)"
        if known:
            rows.append(f"| {event.format(**known)} | {cell(old, name, result)} | {now} |\n")
        else:
            rows.append(f"| {name.replace('_', ' ')} | not measured | not measured |\n")
    machines = sorted({str(figures["machine"]) for figures in (new or old).values()})
    return HEAD + "".join(rows) + TAIL.format(machine="; ".join(machines))


if __name__ == "__main__":
    text = page(ROOT / "results" / "reliability")
    (ROOT / "docs" / "reliability.md").write_text(text, encoding="utf-8")
    print(text)

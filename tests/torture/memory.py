"""Run `vhe fit` with limits of address space, from too little to enough.

    python memory.py FOLDER LIMITS VERTICES

Each run is a fork of this process, which has imported the libraries already: the limit is what it
has mapped, plus a growing amount. A run succeeds, ends with one sentence and exit status 2, or is
killed by the system.
"""

import contextlib
import json
import os
import re
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.network_tables import write_tables
from vhe.runtime import memory

HANG_SECONDS = 60
MOST = 400_000_000  # bytes beyond what is mapped at the start


def mapped() -> int:
    found = re.search(r"VmSize:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def outcome(command: list[str], limit: int | None, log: Path) -> str:
    """What comes of a command in a fork, with this limit."""
    child = os.fork()
    if child == 0:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        memory.LEAST_ADDRESS_SPACE = 0  # needed to import what is imported already
        signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
        signal.alarm(20 * HANG_SECONDS)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        status = 70
        try:
            status = main(command)
        except BaseException:
            with contextlib.suppress(BaseException):
                traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    printed = log.read_text(errors="replace")
    sentences = [line for line in printed.splitlines() if line.startswith("vhe: ")]
    if status == 0:
        return "success"
    if status == 2 and len(sentences) == 1 and "Traceback" not in printed:
        return "sentence"
    if status == -signal.SIGKILL:
        return "killed"
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        return f"a hang: {printed[-500:]}"
    return f"exit status {status}: {printed[-700:]}"


def sweep(folder: Path, count: int, n: int) -> dict[str, Any]:
    texts = [" ".join(f"w{(i * k) % 997}" for k in range(1, 40)) for i in range(n)]
    network = TextNetwork(range(n), texts, [(i, (i * 7 + 1) % n) for i in range(n)])
    files = folder / "vertices.csv", folder / "edges.csv"
    write_tables(*files, network)
    found: dict[str, int] = {}
    problems = []
    base = mapped()
    for model in ("graph", "pair"):
        fit = ["fit", "--vertices", str(files[0]), "--edges", str(files[1]), "--seed", "1"]
        fit += ["--model", model, "--overwrite", "--threads", "1", "--out", str(folder / model)]
        fit += ["--set", *(("max_steps=2",) if model == "graph" else ("steps=2", "contexts=1"))]
        for k in range(count):
            limit = base + MOST * (k + 1) // count
            result = outcome(fit, limit, folder / "log")
            found[result[:8]] = found.get(result[:8], 0) + 1
            if result not in ("success", "sentence", "killed"):
                problems.append(f"{model}, {(limit - base) / 1e6:.0f} MB: {result}")
    return {
        "limits": 2 * count,
        "least_mb": round(MOST / count / 1e6),
        "most_mb": round(MOST / 1e6),
        "succeeded": found.get("success", 0),
        "sentences": found.get("sentence", 0),
        "killed": found.get("killed", 0),
        "problems": problems,
    }


if __name__ == "__main__":
    import pyarrow.parquet  # noqa: F401  what a fit imports, before the limits
    import torch  # noqa: F401

    import vhe.estimators  # noqa: F401

    print(json.dumps(sweep(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))

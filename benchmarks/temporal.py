"""Link prediction over time: train on the past, test on the future.

    python benchmarks/temporal.py [--ratios 50,70,85] [--seeds 0-2] [--out results/temporal]

The network is made from what a Debian system has installed. Vertices are packages, texts their
descriptions; two packages are linked from the date at which an entry of the changelog of one first
names the other. Names without a digit or a hyphen are ignored, because many are English words. A
changelog that several packages share is read once. For comparison, the same share of links is also
drawn at random.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from vhe.data.network import TextNetwork
from vhe.evaluation.experiment import LINK_MEASURES, parse_names, parse_seeds, parse_shares
from vhe.evaluation.link import evaluate
from vhe.evaluation.methods import make
from vhe.runtime.provenance import provenance

METHODS = "vhe,diffused-text,tadw,gcn-ncn,adamic-adar,katz,tfidf"
STATUS, DOCUMENTS = Path("/var/lib/dpkg/status"), Path("/usr/share/doc")
NAME = re.compile(r"[a-z0-9][a-z0-9+.\-]*[a-z0-9+]")
SIGNATURE = re.compile(r"^ -- .*?>  (.*)$", re.MULTILINE)  # ends an entry, with its date


def changelog_network(
    status: Path = STATUS, documents: Path = DOCUMENTS
) -> tuple[TextNetwork, np.ndarray]:
    """Return the network of packages that are linked, and the time of each edge in seconds."""
    texts = dict(_descriptions(status.read_text(encoding="utf-8", errors="replace")))
    times: dict[tuple[str, str], float] = {}
    read = set()
    for name in sorted(texts):
        for path in sorted((documents / name).glob("changelog*.gz")):
            try:
                content = gzip.decompress(path.read_bytes())
            except OSError:
                continue
            digest = hashlib.sha256(content).digest()
            if digest in read:
                continue
            read.add(digest)
            for other, time in _mentions(content.decode(errors="replace")):
                if other in texts and other != name:
                    pair = min(name, other), max(name, other)
                    times[pair] = min(time, times.get(pair, time))
    ids = sorted({end for pair in times for end in pair})
    number = {name: k for k, name in enumerate(ids)}
    edges = np.array([[number[a], number[b]] for a, b in times], dtype=np.int64).reshape(-1, 2)
    network = TextNetwork(ids, [texts[name] for name in ids], edges, name="changelogs")
    return network, np.array(list(times.values()))


def _descriptions(status: str) -> Iterator[tuple[str, str]]:
    for record in status.split("\n\n"):
        name = re.search(r"^Package: (\S+)", record, re.MULTILINE)
        text = re.search(r"^Description: (.*(?:\n .*)*)", record, re.MULTILINE)
        if name and text:
            yield name[1], text[1]


def _mentions(changelog: str) -> Iterator[tuple[str, float]]:
    """Yield names with a digit or a hyphen, and the time of the entry that has them."""
    start = 0
    for signature in SIGNATURE.finditer(changelog):
        entry, start = changelog[start : signature.start()], signature.end()
        try:
            time = parsedate_to_datetime(signature[1]).timestamp()
        except (TypeError, ValueError):
            continue
        for name in set(NAME.findall(entry)):
            if "-" in name or any(letter.isdigit() for letter in name):
                yield name, time


def measure(
    network: TextNetwork,
    times: np.ndarray | None,
    method: str,
    ratio: float,
    seeds: tuple[int, ...],
) -> dict[str, float]:
    """Return the mean scores over seeds, of a split by time or (times None) at random."""
    rows = []
    for seed in seeds:
        train, test = network.split_edges(ratio, seed=seed, time=times)
        rows.append(evaluate(make(method, seed).fit(train), test).as_dict())
    return {name: fmean(row[name] for row in rows) for name in LINK_MEASURES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratios", default="50,70,85")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--out", type=Path, default=Path("results/temporal"))
    arguments = parser.parse_args()
    network, times = changelog_network()
    seeds = parse_seeds(arguments.seeds)
    scores: list[dict[str, Any]] = []
    print(network)
    for ratio in parse_shares(arguments.ratios, "--ratios"):
        for method in parse_names(arguments.methods, "--methods"):
            for split, given in (("time", times), ("random", None)):
                found = measure(network, given, method, ratio, seeds)
                scores.append({"method": method, "ratio": ratio, "split": split} | found)
                figures = "  ".join(f"{name} {100 * found[name]:5.1f}" for name in LINK_MEASURES)
                print(f"{100 * ratio:.0f} % {split:7} {method:14} {figures}", flush=True)
    about = {
        "network": network.name,
        "vertices": len(network),
        "links": len(network.links),
        "seeds": list(seeds),
        "scores": scores,
        "origin": provenance(seeds[0]),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{network.name}.json"
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

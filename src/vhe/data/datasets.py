"""Named datasets: download, verification and statistics."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from vhe.data.network import TextNetwork
from vhe.data.readers.cane import read_cane
from vhe.data.readers.debian import read_debian
from vhe.data.readers.seealso import read_seealso
from vhe.data.sources import read
from vhe.errors import VHEError
from vhe.runtime.files import atomic_write, cache_folder, read_bytes

__all__ = ["load"]

# The files published by thunlp/CANE under the MIT licence.
BASE_URL = "https://raw.githubusercontent.com/thunlp/CANE/a0e7e78/datasets"


@dataclass(frozen=True)
class Dataset:
    """Description of a dataset and, if it is downloaded, the checksums of its files."""

    description: str
    upstream: str = ""  # name of its folder at `BASE_URL`
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256, or git's blob id after "git:"


DATASETS: Mapping[str, Dataset] = {
    "seealso": Dataset(
        "functions and classes of numpy, scipy, scikit-learn, networkx and pandas, linked by their "
        "See Also sections; built from the installed packages"
    ),
    "cora": Dataset(
        "2,277 machine-learning papers with their citations and 7 topics; downloaded (1.7 MB)",
        "cora",
        {
            "data.txt": "0b3f7748134974d3d261365f625e532ea889edf27560b28cd24f6d1f9c71fbb9",
            "graph.txt": "b2202fda793a7ef9216aa55ce1b21f96985129ba009c5b49ec39a9f0abc18b23",
            "group.txt": "77b948c2a5fd7ff8e8cddeeaa06f0c8789fbde1edfc3795d2c8a98f6f0e2a502",
        },
    ),
    "hepth": Dataset(
        "1,038 papers on high-energy physics theory with their citations; downloaded (0.4 MB)",
        "HepTh",
        {
            "data.txt": "0f50f28ef7a67e0945e18cf2752434d170b26314c6a8b0c2e0b7d3835043c77a",
            "graph.txt": "babc7eae2308607df168a6d65e1d2eb147bd280212fd52b451d6697fb544cb26",
        },
    ),
    "zhihu": Dataset(
        "10,000 users of the Zhihu forum with their topics and followers; downloaded",
        "zhihu",
        {
            "data.txt": "git:ec4932a37d80de84583f0c01548ef3d98344e4dc",
            "graph.txt": "ad7b59c76af4740d2a594bf0a9625652bc47acd4d183b14b91c07c4fab11ff4a",
        },
    ),
    "debian": Dataset(
        "the packages in this machine's apt lists, linked by their dependencies; read from apt"
    ),
}


def describe(name: str) -> str:
    """Return a one-line description of a dataset."""
    if name not in DATASETS:
        raise _unknown(name)
    return DATASETS[name].description


def load(source: str | PathLike[str], *, base_url: str | None = None) -> TextNetwork:
    """Load a dataset by name, or a network from a folder in CANE's format or a GraphML file.

    Parameters
    ----------
    source : str or path
        One of `DATASETS`, or a path; write `./cora` for a folder that has the name of a dataset.
    base_url : str, optional
        Base URL for downloads (default: VHE_DATA_URL, or where the files were published). Files
        in the folder VHE_DATA_DIR or in the cache (VHE_CACHE, or `vhe` in XDG_CACHE_HOME or in
        ~/.cache) are not downloaded. The checksums of all files are verified.
    """
    name = str(source)
    if name == "seealso":
        return TextNetwork.from_parts(read_seealso(), count_oddities=False)
    if name == "debian":
        return TextNetwork.from_parts(read_debian(), count_oddities=False)
    if name in DATASETS:
        paths = {file: fetch(name, file, base_url) for file in DATASETS[name].files}
        data, graph, group = paths["data.txt"], paths["graph.txt"], paths.get("group.txt")
        parts = read_cane(data, graph, group, name=name, replace_invalid=True)
        return TextNetwork.from_parts(parts)
    if Path(source).exists():
        return read(source)
    raise _unknown(name)


def statistics(network: TextNetwork) -> dict[str, Any]:
    """Return the statistics of a network; words are separated by white space."""
    n, links = len(network), len(network.links)
    words = np.array([len(text.split()) for text in network.texts])
    labels = [label for label in network.labels or () if label is not None]
    return {
        "name": network.name,
        "vertices": n,
        "edge_lines": len(network.edges),
        "loops": network.loops,
        "repeated": len(network.edges) - network.loops - links,
        "links": links,
        "isolated": int((network.degrees == 0).sum()),
        "density": links / (n * (n - 1) / 2) if n > 1 else 0.0,
        "words_mean": float(words.mean()),
        "words_median": float(np.median(words)),
        "words_p90": float(np.percentile(words, 90)),
        "words_max": int(words.max()),
        "labels": len(set(labels)),
        "labelled": len(labels),
    }


def fetch(name: str, file: str, base_url: str | None = None) -> Path:
    """Return the path of a verified file of a dataset; download it if it is not available."""
    dataset = DATASETS[name]
    expected = dataset.files[file]
    mirror = os.environ.get("VHE_DATA_DIR")
    if mirror:
        for folder in (name, dataset.upstream):
            path = Path(mirror) / folder / file
            if path.exists():
                if not _matches(read_bytes(path), expected):
                    raise VHEError(
                        f"{path} is not the published file (its checksum differs); replace it, "
                        "or unset VHE_DATA_DIR to download it."
                    )
                return path
    path = cache_folder() / name / file
    if path.is_file() and _matches(read_bytes(path), expected):
        return path
    base = base_url or os.environ.get("VHE_DATA_URL") or BASE_URL
    content = _download(f"{base.rstrip('/')}/{dataset.upstream}/{file}", f"{name}/{file}")
    if not _matches(content, expected):
        raise VHEError(
            f"{name}/{file} was downloaded from {base} ({len(content):,} bytes), but its checksum "
            "is wrong and it was discarded; try again."
        )
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return path


def _download(url: str, what: str) -> bytes:
    """Return the content of `url`."""
    from http.client import HTTPException
    from urllib.request import urlopen

    try:  # the default URL is https; another one is the user's choice
        with urlopen(url, timeout=30) as response:  # nosec B310
            content: bytes = response.read()
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise VHEError(
            f"{what} could not be downloaded from {url} ({str(reason).rstrip('.')}); to work "
            f"offline, put the file at {what} in a folder and set VHE_DATA_DIR to the folder."
        ) from error
    return content


def _matches(content: bytes, expected: str) -> bool:
    if expected.startswith("git:"):
        blob = b"blob %d\0" % len(content) + content
        return hashlib.sha1(blob, usedforsecurity=False).hexdigest() == expected[4:]
    return hashlib.sha256(content).hexdigest() == expected


def _unknown(name: str) -> VHEError:
    near = difflib.get_close_matches(name.lower(), DATASETS, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return VHEError(
        f"{name!r} is neither a dataset{meant} nor a file or folder; "
        f"the datasets are {', '.join(DATASETS)}."
    )

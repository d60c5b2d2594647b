"""Model folders that somebody made to do harm: each one is loaded in a fork that tells what it
did, how long it took and how much memory it wanted.

    python attacks.py MODEL FOLDER EVERY

Of EVERY so many attacks one is made.
"""

import hashlib
import json
import os
import pickle
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from forked import measured
from safetensors.torch import load, save

from vhe.estimators import load_model
from vhe.storage.folder import FORMAT, MANIFEST, json_bytes

TERABYTE, NAN = 1 << 40, float("nan")
Harm = Callable[[Path], None]


class Payload:
    """What a pickle runs when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch executed",)


def seal(folder: Path) -> None:
    """A manifest that agrees with the files, whatever they are."""
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    entries = {
        path.name: {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in files
    }
    manifest = {"format": FORMAT, "kind": "model", "files": entries}
    (folder / MANIFEST).unlink(missing_ok=True)  # truncating it instead would wait for the disk
    (folder / MANIFEST).write_bytes(json_bytes(manifest))


def written(name: str, data: bytes) -> Harm:
    """A file with other content, and a manifest that agrees."""

    def harm(folder: Path) -> None:
        (folder / name).write_bytes(data)
        seal(folder)

    return harm


def edited(name: str, change: Callable[[dict[str, Any]], None]) -> Harm:
    def harm(folder: Path) -> None:
        document = json.loads((folder / name).read_bytes())
        change(document)
        (folder / name).write_bytes(json_bytes(document))
        if name != MANIFEST:
            seal(folder)

    return harm


def setting(**changes: object) -> Harm:
    return edited("config.json", lambda about: about["config"].update(changes))


def naming(other: str) -> Harm:
    """A manifest with a file elsewhere."""
    secret = b"secret"
    entry = {"bytes": len(secret), "sha256": hashlib.sha256(secret).hexdigest()}

    def harm(folder: Path) -> None:
        (folder.parent / "secret").write_bytes(secret)
        edited(MANIFEST, lambda manifest: manifest["files"].update({other: entry}))(folder)

    return harm


def weights(change: Callable[[dict[str, Any]], None]) -> Harm:
    def harm(folder: Path) -> None:
        tensors = load((folder / "weights.safetensors").read_bytes())
        change(tensors)
        (folder / "weights.safetensors").write_bytes(save(tensors))
        seal(folder)

    return harm


def safetensors_header(claim: dict[str, Any]) -> bytes:
    header = json.dumps(claim).encode()
    return struct.pack("<Q", len(header)) + header + bytes(64)


def terabyte_of_nothing(folder: Path) -> None:
    """A file with a hole of a terabyte, and a manifest that says so."""
    os.truncate(folder / "weights.safetensors", TERABYTE)

    def claim(manifest: dict[str, Any]) -> None:
        manifest["files"]["weights.safetensors"]["bytes"] = TERABYTE

    edited(MANIFEST, claim)(folder)


def varint(number: int) -> bytes:
    number, out = number << 1, b""
    while number >= 128:
        out, number = out + bytes([number % 128 + 128]), number >> 7
    return out + bytes([number])


def rows_beyond_number(folder: Path) -> None:
    """Every count in the footer of a Parquet file says a trillion."""
    pq.write_table(pa.table({"source": [0] * 70_001, "target": [1] * 70_001}), folder / "e")
    raw = (folder / "e").read_bytes()
    (folder / "e").unlink()
    size = struct.unpack("<I", raw[-8:-4])[0]
    footer = raw[-8 - size : -8].replace(varint(70_001), varint(10**12))
    data = raw[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"
    written("edges.parquet", data)(folder)


def one_text_often(folder: Path) -> None:
    """A text of a megabyte for each of 200,000 vertices, in a few kilobytes."""
    n = 200_000
    once = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), ["word " * 200_000])
    ids = pa.array([str(k) for k in range(n)])
    table = pa.table({"id": ids, "text": once})
    pq.write_table(table, folder / "vertices.parquet", dictionary_pagesize_limit=1 << 24,
                   compression="zstd")  # fmt: skip
    seal(folder)


def linked(name: str) -> Harm:
    def harm(folder: Path) -> None:
        (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(folder.parent / "elsewhere")

    return harm


def pipe(name: str) -> Harm:
    """A named pipe: who opens it waits for ever."""

    def harm(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return harm


def set_nan(tensors: dict[str, Any]) -> None:
    tensors["network.words.weight"][1, 0] = torch.nan


def set_infinity(tensors: dict[str, Any]) -> None:
    tensors["mean"][0, 0] = torch.inf


def set_integers(tensors: dict[str, Any]) -> None:
    tensors["network.words.weight"] = tensors["network.words.weight"].to(torch.int32)


def attacks(model: Path) -> dict[str, Harm]:
    names = sorted(os.listdir(model))
    evil = pickle.dumps(Payload())
    offsets = {"dtype": "F32", "shape": [TERABYTE], "data_offsets": [0, 4 * TERABYTE]}
    deep = b"[" * 200_000 + b"]" * 200_000
    made: dict[str, Harm] = {
        "a newer format": edited(MANIFEST, lambda m: m.update(format=FORMAT + 1)),
        "format 0": edited(MANIFEST, lambda m: m.update(format=0)),
        "a manifest of 100 MB": lambda f: os.truncate(f / MANIFEST, 100 << 20),
        "a hole of a terabyte": terabyte_of_nothing,
        "a longer header than file": written(
            "weights.safetensors", struct.pack("<Q", TERABYTE) + b"{}"
        ),
        "a tensor of terabytes": written("weights.safetensors", safetensors_header({"a": offsets})),
        "a trillion rows": rows_beyond_number,
        "one text 200,000 times": one_text_often,
        "weights that are NaN": weights(set_nan),
        "an embedding that is infinite": weights(set_infinity),
        "weights that are integers": weights(set_integers),
        "a seed beyond all numbers": written("result.json", b'{"seed": 1e999}'),
        "a link posterior that is NaN": edited(
            "config.json", lambda c: c["numbers"].update({"link.offset": NAN})
        ),
    }  # fmt: skip
    for name in names:
        made[f"no {name}"] = lambda f, name=name: (f / name).unlink()
        made[f"{name} is a link"] = linked(name)
        made[f"{name} is a pipe"] = pipe(name)
        made[f"{name} is empty"] = lambda f, name=name: (f / name).write_bytes(b"")
        if name != MANIFEST:
            made[f"{name} is a pickle"] = written(name, evil)
            made[f"{name} is deep"] = written(name, deep)
    for other in ("../secret", "/etc/hostname", "..", "a/../../secret", "..\\secret", "\0"):
        made[f"naming {other!r}"] = naming(other)
    for size in ("word_dim", "hidden_dim", "latent_dim", "kernels", "max_words", "structure_dim"):
        made[f"{size} of a terabyte"] = setting(**{size: TERABYTE})
        made[f"{size} beyond 64 bits"] = setting(**{size: 10**30})
    made["all sizes of a terabyte"] = setting(
        word_dim=TERABYTE, latent_dim=TERABYTE, structure_dim=TERABYTE
    )
    return made


def main(model: Path, base: Path, every: int) -> dict[str, Any]:
    problems, slowest, most = [], 0.0, 0.0
    os.chdir(base)
    made = dict(list(attacks(model).items())[::every])
    load_model(model)  # imports everything that loading needs
    assert measured(lambda: load_model(model), "")["said"] == "done"
    for k, (name, harm) in enumerate(made.items()):
        folder = base / str(k) / "model"
        shutil.copytree(model, folder)
        harm(folder)
        found = measured(lambda folder=folder: load_model(folder), str(folder))
        slowest, most = max(slowest, found["seconds"]), max(most, found["megabytes"])
        if found["said"] != "refused" or found["did"] or (base / "executed").exists():
            problems.append(f"{name}: {found}")
        if found["seconds"] > 1 or found["megabytes"] > 200:
            problems.append(f"{name}: {found['seconds']:.1f} s, {found['megabytes']:.0f} MB")
        shutil.rmtree(folder.parent)
    return {
        "attacks": len(made),
        "refused": len(made) - len({problem.split(":")[0] for problem in problems}),
        "slowest_seconds": round(slowest, 2),
        "most_megabytes": round(most),
        "problems": problems,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))

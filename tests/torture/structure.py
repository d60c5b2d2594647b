"""Structural fuzzing of model folders: values, tables and rows are changed, and the checksums made
right again. Each folder is refused with one sentence, or gives finite answers.

    python structure.py FOLDER COUNT SEED MODEL...

Batches run in forked processes, so that a crash or a hang affects one folder and is counted.
"""

import copy
import json
import os
import random
import re
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attacks import seal

from vhe.errors import VHEError
from vhe.estimators import Estimator, load_model
from vhe.storage.arrays import array_file, read_arrays
from vhe.storage.folder import json_bytes

BATCH, HANG_SECONDS = 200, 10
DOCUMENTS = ("config.json", "result.json", "history.jsonl")
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, 10**30, -(10**30), 0.5, -0.5, 1e-320, 1e-30,
    1e30, 1e308, -1e308, float("nan"), float("inf"), "", "text", "1", "nan", "\ud800", "\x1b[2J",
    "a\nb", "x" * 10_000, [], [1], ["a"], [None], [[1.0, 2.0]], {}, {"a": 1}, {"tuple": [1]},
]  # fmt: skip
KEYS = [
    '"a"', "1", "1.5", "null", "true", "NaN", "1e999", '"\\ud800"', '{"tuple": [1, "a"]}', "{}",
    '{"tuple": 1}', '{"bytes": "ff"}', '{"bytes": "f"}', '{"bytes": 1}', "[]", "[", "", "abc",
    '{"tuple": [[]]}', '"' + "y" * 5000 + '"', '"v0"', '"\\u202e"', '{"x": 1}', "1" * 5000,
]  # fmt: skip
TEXTS = ["", "word", "t0w1 " * 3000, "\x1b]0;x\x07", "\u202eab", "a" * 100_000, "\0", "t1w1 T2W2"]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-30, 1e4, 1e9, 1e12, -1e12, 1e19, 3e38, np.nan,
           np.inf, -np.inf]  # fmt: skip


class Model:
    """The content of a model folder, from which it can be written again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        lines = self.files["history.jsonl"].decode().splitlines()
        self.documents: dict[str, Any] = {
            "config.json": json.loads(self.files["config.json"]),
            "result.json": json.loads(self.files["result.json"]),
            "history.jsonl": [json.loads(line) for line in lines],
        }
        self.words = self.files["vocabulary.txt"].decode().split("\n")
        tables = read_arrays(folder / "weights.safetensors", "")
        self.arrays = {name: np.array(table) for name, table in tables.items()}
        self.tables = {
            name: pq.read_table(folder / name).to_pydict()
            for name in ("vertices.parquet", "edges.parquet")
        }


def walk(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON document: the object or list, and the key or index."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    if not isinstance(value, dict | list):
        return []
    places = []
    for key in keys:
        places.append((value, key))
        if isinstance(value[key], dict | list):
            places += walk(value[key])
    return places


def change_document(model: Model, draw: random.Random) -> dict[str, bytes]:
    name = draw.choice((*DOCUMENTS, "config.json", "result.json"))
    document = copy.deepcopy(model.documents[name])
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        places = walk(document)
        if not places:
            break
        holder, key = draw.choice(places)
        action = draw.randrange(6)
        if action == 0:
            del holder[key]
        elif action == 1:
            holder[key] = copy.deepcopy(draw.choice(draw.choice(places)[0:1]))
        elif action == 2 and isinstance(holder, dict):
            holder[draw.choice(("unknown", "", "link.words", "scale.x", key + "x"))] = holder[key]
        elif action == 3 and isinstance(holder[key], int | float):
            holder[key] = holder[key] * draw.choice((-1, 0, 2, 1e6, 1e12, 1e300))
        else:
            holder[key] = draw.choice(VALUES)
    if draw.random() < 0.03:
        document = draw.choice(VALUES)
    if name != "history.jsonl":
        return {name: json_bytes(document)}
    lines = document if isinstance(document, list) else [document]
    return {name: "".join(json.dumps(line) + "\n" for line in lines).encode()}


def change_arrays(model: Model, draw: random.Random, path: Path) -> dict[str, bytes]:
    arrays = {name: table.copy() for name, table in model.arrays.items()}
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        name = draw.choice(sorted(arrays))
        table, other = arrays[name], draw.choice(sorted(arrays))
        action = draw.randrange(12)
        if action == 0:
            del arrays[name]
        elif action == 1:
            arrays[name] = table[:-1] if table.ndim else table[None]
        elif action == 2:
            arrays[name] = np.concatenate([table, table[-1:]]) if table.ndim else table[None]
        elif action == 3:
            arrays[name] = np.ascontiguousarray(table.T) if draw.random() < 0.5 else table.ravel()
        elif action == 4:
            arrays[name] = table.astype(draw.choice(("<f4", "<f8", "<i4", "<i8")))
        elif action == 5:
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif action == 6:
            arrays[draw.choice(("unknown", "scale.weak links", "scale.x", "network.x"))] = table
        elif action == 7 and table.ndim == 2 and draw.random() < 0.5:
            arrays[name] = table[:, :-1]
        elif table.size:
            value = draw.choice(NUMBERS)
            if table.dtype.kind == "i":
                value = draw.choice((0, -1, 1, 2**31 - 1, int(table.max()) + 1, 10**6))
            flat = table.reshape(-1)
            with np.errstate(all="ignore"):
                if action == 8:
                    flat[:] = value
                elif action == 9 and table.dtype.kind == "f":
                    flat *= np.float32(value)
                elif action == 10:
                    draw_order = np.random.default_rng(draw.randrange(2**32))
                    draw_order.shuffle(flat)
                else:
                    flat[draw.randrange(len(flat))] = value
    array_file(arrays)(path)
    return {"weights.safetensors": path.read_bytes()}


def change_words(model: Model, draw: random.Random) -> dict[str, bytes]:
    words = list(model.words)
    for _ in range(draw.choice((1, 1, 2))):
        k = draw.randrange(len(words))
        action = draw.randrange(5)
        if action == 0:
            del words[k]
        elif action == 1:
            words.insert(k, draw.choice(words))
        elif action == 2:
            words[k] = draw.choice(words)
        elif action == 3:
            draw.shuffle(words)
        else:
            words[k] = draw.choice(("", " ", "\x1b[2J", "\r", "A B", "\u202e", "x" * 5000, "\0"))
    return {"vocabulary.txt": "\n".join(words).encode()}


def change_rows(model: Model, draw: random.Random, path: Path) -> dict[str, bytes]:
    name = draw.choice(sorted(model.tables))
    columns = {key: list(values) for key, values in model.tables[name].items()}
    key = draw.choice(sorted(columns))
    column = columns[key]
    k = draw.randrange(len(column))
    action = draw.randrange(8)
    if action == 0:
        columns = {key: values[:-1] for key, values in columns.items()}
    elif action == 1:
        columns = {key: [*values, values[-1]] for key, values in columns.items()}
    elif action == 2:
        columns[draw.choice(("unknown", "label", "Id"))] = columns.pop(key)
    elif action == 3:
        columns[key] = [draw.choice((1.5, None, b"\xff", "7", True, 0))] * len(column)
    elif key in ("source", "target"):
        column[k] = draw.choice((-1, 10**6, 2**62, column[k - 1], None, 0))
    elif key == "text":
        column[k] = draw.choice((*TEXTS, None))
    elif draw.random() < 0.3:
        draw.shuffle(column)
    else:
        column[k] = draw.choice(KEYS)
    try:
        pq.write_table(pa.table(columns), path)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return change_rows(model, draw, path)
    return {name: path.read_bytes()}


def finite(value: Any) -> bool:
    """Whether every number in an answer is finite."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    if isinstance(value, float | np.ndarray | np.generic):
        return bool(np.isfinite(np.asarray(value, dtype=float)).all())
    return True


def answers(model: Estimator, draw: random.Random) -> None:
    """Ask everything that a fitted model can be asked; raise if an answer is not finite."""
    network = model.network_
    ids = network.ids
    a, b = ids[0], ids[-1]
    text = next((text for text in network.texts if text), "t0w1")[:500]
    questions: dict[str, Callable[[], Any]] = {
        "embed": lambda: model.embed(return_std=True),
        "predict_proba": lambda: model.predict_proba([(a, b), (b, a), (a, ids[len(ids) // 2])]),
        "suggest_links": lambda: [found.probability for found in model.suggest_links(a, 5)],
        "suggest_all": lambda: model.suggest_all(5)["probability"].to_numpy(),
        "embed_texts": lambda: model.embed_texts([text, ""], [(0, b)]),
        "score_texts": lambda: model.score_texts([text]),
        "reliability": lambda: vars(model.reliability()),
        "repr": lambda: repr(model),
        "explain": lambda: explained(model, a, b),
    }
    if draw.random() < 0.2:
        questions["add"] = lambda: model.add_vertices({"new vertex": text}, [("new vertex", b)])
        questions["embed again"] = lambda: model.embed(return_std=True)
    for name, ask in questions.items():
        try:
            found = ask()
        except VHEError as error:
            if "\n" in str(error):
                raise AssertionError(f"{name}: {error}") from None
            continue
        if not finite(found):
            raise AssertionError(f"{name}: an answer that is not finite")


def explained(model: Estimator, a: Any, b: Any) -> Any:
    found = model.explain(a, b)
    found.to_html().encode(errors="surrogatepass")
    return found.to_dict()


def ask(folder: Path, models: list[Model], number: int, seed: int) -> str:
    """Change a model folder, load it and ask; return the outcome."""
    draw = random.Random(f"{seed}/{number}")
    model = draw.choice(models)
    kind = draw.choice(("document", "document", "arrays", "arrays", "words", "rows"))
    path = folder.parent / "changed"
    changed = {
        "document": lambda: change_document(model, draw),
        "arrays": lambda: change_arrays(model, draw, path),
        "words": lambda: change_words(model, draw),
        "rows": lambda: change_rows(model, draw, path),
    }[kind]()
    for name, data in (model.files | changed).items():
        (folder / name).unlink(missing_ok=True)  # truncating it instead would wait for the disk
        (folder / name).write_bytes(data)
    seal(folder)
    try:
        loaded = load_model(folder)
    except VHEError as error:
        message = str(error)
        poor = "\n" in message or len(message) > 700 or str(folder) not in message
        return f"folder {number}: a poor message: {message[:300]!r}" if poor else "refused"
    except BaseException:
        return f"folder {number} ({kind}): {traceback.format_exc()[-700:]}"
    try:
        answers(loaded, draw)
        return "answered"
    except BaseException:
        return f"folder {number} ({kind}), asked: {traceback.format_exc()[-700:]}"


def batch(folder: Path, models: list[Model], numbers: range, seed: int) -> None:
    """In a forked process: log the number of each folder before it is loaded, and the outcome."""
    warnings.simplefilter("ignore")
    with (folder.parent / "log").open("a") as log:
        for number in numbers:
            log.write(json.dumps({"number": number}) + "\n")
            log.flush()
            signal.setitimer(signal.ITIMER_PROF, 2 * HANG_SECONDS)
            signal.alarm(240)
            began = time.process_time()
            outcome = ask(folder, models, number, seed)
            seconds = time.process_time() - began
            log.write(json.dumps({"outcome": outcome, "seconds": seconds}) + "\n")


def fuzz(base: Path, count: int, seed: int, folders: list[Path]) -> dict[str, Any]:
    models = [Model(folder) for folder in folders]
    for model in models:  # imports what loading and asking need
        answers(load_model(model.folder), random.Random(0))
    folder = base / "model"
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    hangs = crashes = done = 0
    slowest = 0.0
    while done < count:
        (base / "log").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        numbers = range(done, min(done + BATCH, count))
        child = os.fork()
        if child == 0:
            batch(folder, models, numbers, seed)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for line in (base / "log").read_text().splitlines():
            entry = json.loads(line)
            if "number" in entry:
                done = entry["number"] + 1
            else:
                slowest = max(slowest, entry["seconds"])
                hangs += entry["seconds"] > HANG_SECONDS
                outcomes[re.sub(r"folder \d+", "problem", entry["outcome"])[:7]] += 1
                if entry["outcome"].startswith("folder"):
                    problems.append(entry["outcome"])
        if status:
            stopped = status in (-signal.SIGPROF, -signal.SIGALRM)
            hangs, crashes = hangs + stopped, crashes + (not stopped)
            problems.append(f"folder {done - 1} ended its process with {status}")
    tracebacks = [problem for problem in problems if "not finite" not in problem]
    return {
        "folders": count,
        "refused": outcomes["refused"],
        "answered": outcomes["answere"],
        "tracebacks": len(tracebacks),
        "not_finite": len(problems) - len(tracebacks),
        "crashes": crashes,
        "hangs": hangs,
        "slowest_seconds": round(slowest, 2),
        "problems": problems[:20],
    }


if __name__ == "__main__":
    arguments = sys.argv[1:]
    found = fuzz(Path(arguments[0]), int(arguments[1]), int(arguments[2]),
                 [Path(name) for name in arguments[3:]])  # fmt: skip
    print(json.dumps(found))

"""Arrays in files of safetensors, mapped into memory when they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.arrays import blocks

DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}  # of arrays


def array_file(arrays: Mapping[str, NDArray[Any]]) -> Callable[[Path], None]:
    """Return a function that writes arrays as safetensors; the same ones give the same bytes.

    The arrays are written from where they are, block by block: a model is saved without a second
    copy in memory.
    """
    types = {np.dtype(code): name for name, code in DTYPES.items()}
    # by size of a number first, so that each array is aligned in the file
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))

    def write(path: Path) -> None:
        header: dict[str, Any] = {}
        end = 0
        for name in names:
            array, start = arrays[name], end
            if array.dtype not in types:
                raise VHEError(f"{path}: an array of type {array.dtype} cannot be saved")
            end += array.nbytes
            entry = {"dtype": types[array.dtype], "shape": array.shape}
            header[name] = entry | {"data_offsets": [start, end]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with path.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                for _, part in blocks(np.ascontiguousarray(arrays[name]).reshape(-1)):
                    file.write(part.data.cast("B"))

    return write


def read_arrays(path: Path, where: str) -> dict[str, NDArray[Any]]:
    """Return the arrays in a file of safetensors, mapped into memory, not copied."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as checked:  # checks the sizes and offsets of all arrays
            names = set(checked.keys())
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size))
        data = np.memmap(path, np.uint8, "r")[8 + size :]
        found = {}
        for name in names:
            entry = header[name]
            start, end = entry["data_offsets"]
            dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
            found[name] = data[start:end].view(dtype).reshape(shape)
        return found
    except (SafetensorError, OSError, ValueError, OverflowError, KeyError, TypeError) as error:
        raise VHEError(f"{where}: not valid safetensors ({error})") from None

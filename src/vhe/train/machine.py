"""What of the machine is used: the device, and how many of its cores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from vhe.data.checked import is_whole
from vhe.errors import VHEError


def find_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)  # a GPU that is not there is found here
    except (RuntimeError, TypeError, AssertionError):
        raise VHEError(f"there is no device {name!r} here: use auto, cpu or cuda") from None
    return device


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Use a number of threads inside a with block; None leaves the choice to torch."""
    if count is not None and not (is_whole(count) and count >= 1):
        raise VHEError(f"threads is {count!r}, but it has to be a whole number of at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

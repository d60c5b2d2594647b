"""Memory limits: errors that mean "out of memory", and what is needed to start at all."""

from __future__ import annotations

import errno

from vhe.errors import VHEError

# Address space that numpy, scipy, pyarrow and torch map when they are imported, in bytes. Below
# it OpenBLAS and OpenMP abort or wait for ever instead of raising an error.
LEAST_ADDRESS_SPACE = 2_600_000_000
PHRASES = (  # of errors that are no MemoryError
    *("not enough memory", "out of memory", "cannot allocate memory", "can't allocate memory"),
    *("bad_alloc", "defaultcpuallocator", "can't start new thread", "failed to map segment"),
    "unable to allocate",
)


def check_address_space() -> None:
    """Raise `VHEError` if a limit (``ulimit -v``) leaves too little to import the libraries."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        raise VHEError(
            f"the limit of address space (ulimit -v) is {limit / 1e6:,.0f} MB, but at least "
            f"{LEAST_ADDRESS_SPACE / 1e6:,.0f} MB are needed to start; raise it"
        )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or what it was raised from, is a failed allocation.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    True
    """
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        text = str(error).lower()
        if isinstance(error, RuntimeError | OSError | ImportError | SystemError) and any(
            phrase in text for phrase in PHRASES
        ):
            return True
        error = error.__cause__ or error.__context__
    return False

"""An estimate of the memory that each phase of a fit needs, and what follows from a limit.

    base            the interpreter, its libraries and the network with its texts
    vocabulary      the tokens that are processed at a time
    word vectors    TF-IDF rows and singular vectors of the texts that LSA reads
    text neighbours the pairs of nearest texts, and the rows of a cluster and its neighbours
    posterior       the couplings, and the columns that are solved for at a time
    structure       factors of the adjacency matrix

Tables beyond `vhe.runtime.tables.IN_MEMORY` are in files and do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from vhe.errors import VHEError
from vhe.graph.model import NEIGHBOURS
from vhe.graph.posterior import COLUMNS
from vhe.runtime.tables import IN_MEMORY
from vhe.text.lsa import LSA_TEXTS, TEXTS_AT_ONCE

LIBRARIES = 650e6  # bytes, with what the C library retains
BYTES_PER_VERTEX = 350  # ids, positions, offsets
SOLVER_COLUMNS = 32  # of each of four vectors of a thread
FEWEST_COLUMNS = 8


@dataclass(frozen=True)
class Size:
    """What the memory of a fit depends on."""

    vertices: int
    links: int
    characters: int  # of all texts
    words: int  # per text
    vocabulary: int
    dimensions: int
    threads: int

    @property
    def table(self) -> float:
        """Bytes of a table in memory."""
        size = 4.0 * self.vertices * self.dimensions
        return size if size <= IN_MEMORY else 0.0


def phase_memory(size: Size, columns: int = COLUMNS) -> dict[str, int]:
    """Bytes that each phase needs, the base included, by its name."""
    n, pairs = size.vertices, size.links + 0.8 * NEIGHBOURS * size.vertices
    base = LIBRARIES + size.characters + BYTES_PER_VERTEX * n + 40 * size.links + 3 * size.table
    texts = min(n, LSA_TEXTS)
    rows = texts * (12 * size.words + 16 * size.dimensions)
    neighbours = 40 * NEIGHBOURS * n + 4 * 4 * size.dimensions * 32 * n**0.5 + (1 << 28)
    couplings = 70 * pairs
    columns = min(columns, size.dimensions)
    threads = min(size.threads, -(-columns // SOLVER_COLUMNS))  # others have nothing to solve
    solver = 4 * n * (2 * columns + 4 * SOLVER_COLUMNS * threads)
    structure = 74 * n * 10
    extra = {
        "vocabulary": 1 << 28,
        "word vectors": rows + 24 * size.vocabulary * size.dimensions,
        "text codes": TEXTS_AT_ONCE * (24 * size.words + 12 * size.dimensions),
        "text neighbours": neighbours,
        "posterior": couplings + solver,
        "structure": 40 * pairs + structure,  # the couplings without what assembles them
    }
    return {name: int(base + more) for name, more in extra.items()}


def columns_within(size: Size, limit: int | None) -> int:
    """Columns of the posterior that can be solved for at a time; refuse a limit that is too low."""
    if limit is None:
        return COLUMNS
    columns = COLUMNS
    while columns > FEWEST_COLUMNS and phase_memory(size, columns)["posterior"] > limit:
        columns -= FEWEST_COLUMNS
    name, need = max(phase_memory(size, columns).items(), key=lambda phase: phase[1])
    if need > limit:
        raise VHEError(
            f"the phase {name!r} of {size.vertices:,} vertices needs about {need / 1e9:.1f} GB, "
            f"more than the limit of {limit / 1e9:.1f} GB: raise max_memory (--max-memory), lower "
            "latent_dim, or use several machines (--scheduler)"
        )
    return columns

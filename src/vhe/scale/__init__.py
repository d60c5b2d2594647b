"""The default model on several machines: the pipeline of `vhe.VHE` as tasks of Dask."""

from vhe.scale.add import add_vertices
from vhe.scale.model import ShardedModel
from vhe.scale.pipeline import fit

__all__ = ["ShardedModel", "add_vertices", "fit"]

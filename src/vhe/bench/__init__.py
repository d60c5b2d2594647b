"""Benchmarks of this machine, as ratios: one file per benchmark, run by `vhe bench`."""

"""How fast it is on this machine, as ratios: a figure a file, run by `vhe bench`."""

"""Reproduction of the paper: its published results, the grid of experiments, and the report."""

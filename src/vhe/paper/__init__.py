"""The tables of the paper: its figures, the experiments behind them, and ours beside them."""

"""The command `vhe`, also as `python -m vhe`: Ctrl-C ends it with one line at any moment."""

import signal
import sys
from typing import Any


def main() -> int:
    """Run the command; return 130 if it was interrupted, also while modules are imported.

    An interrupted import leaves incomplete modules: what fails after it is no error of its own.
    """
    interrupted = False

    def interrupt(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        from vhe.cli import main as run

        return run()
    except BaseException:
        if not interrupted:
            raise
        print("vhe: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""Ctrl-C ends a command with one line and status 130, whatever it does at that moment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "RecursionError"])
def test_ctrl_c_while_modules_are_imported(error: str, tmp_path: Path) -> None:
    """Also if the incomplete module that it leaves fails otherwise."""
    (tmp_path / "cyclopts.py").write_text(
        "import os, signal, sys\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n"
        f"except KeyboardInterrupt:\n    raise {error} from None\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "vhe", "data"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (130, "vhe: interrupted\n")

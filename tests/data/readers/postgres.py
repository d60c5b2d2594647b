"""A PostgreSQL server of its own for the tests, in a temporary folder and on a free port."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PASSWORD = "s3cr/t@word"


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, if it is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return Path(path).resolve().parent if path else None


def reason_to_skip() -> str:
    """Return why no server can be started; an empty string if one can."""
    if programs() is None:
        return "PostgreSQL is not installed (sh tests/postgres.sh installs it as root with apt-get)"
    if os.getuid() == 0 and _account() is None:
        return "PostgreSQL refuses to run as root, and there is no account postgres or nobody"
    return ""


def _account() -> str | None:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextmanager
def server() -> Iterator[tuple[str, int]]:
    """Start a server with the account `reader` and PASSWORD; yield its host and port."""
    folder = Path(tempfile.mkdtemp(prefix="vhe-postgres-"))
    binaries = programs()
    assert binaries is not None
    options: dict[str, Any] = {"check": True, "capture_output": True, "cwd": folder}
    (folder / "password").write_text(PASSWORD)
    if os.getuid() == 0:
        account = _account()
        assert account is not None
        options |= {"user": account, "group": pwd.getpwnam(account).pw_gid, "extra_groups": []}
        for path in (folder, folder / "password"):
            os.chown(path, pwd.getpwnam(account).pw_uid, pwd.getpwnam(account).pw_gid)
    data = folder / "data"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
    control = [str(binaries / "pg_ctl"), "-D", str(data), "-w"]
    try:
        initialise = ["-U", "reader", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}"]
        subprocess.run(
            [str(binaries / "initdb"), "-D", str(data), "-E", "UTF8", *initialise], **options
        )
        subprocess.run([*control, "-l", str(folder / "log"), "-o", start, "start"], **options)
        try:
            yield "127.0.0.1", port
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""Do something in a fork, and tell what came of it, what it took, and whether it did more than
read."""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from vhe.errors import VHEError

FORBIDDEN = frozenset(
    ["pickle.find_class", "os.system", "os.exec", "os.posix_spawn",
     "subprocess.Popen", "socket.connect", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
     "os.chmod", "os.truncate", "os.link", "os.symlink", "shutil.rmtree"]
)  # fmt: skip


def measured(act: Callable[[], object], where: str, most_seconds: int = 20) -> dict[str, Any]:
    """What ``act`` did in a fork: "done", "refused" by a sentence that names ``where``, or what
    else it said; seconds of work, megabytes beyond those of this process, what it wrote or ran."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, most_seconds)  # it ends the fork
        signal.alarm(20 * most_seconds)
        os.write(writing, json.dumps(_told(act, where)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended = {"said": f"ended with {status}", "seconds": most_seconds, "megabytes": 0, "did": []}
    return json.loads(told) if told else ended


def _told(act: Callable[[], object], where: str) -> dict[str, Any]:
    did: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        writing = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writing or event in FORBIDDEN:
            did.append(f"{event} {arguments}"[:200])

    sys.addaudithook(watch)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        act()
        said = "done"
    except VHEError as error:
        words = str(error)
        good = "\n" not in words and len(words) < 1000 and where in words
        said = "refused" if good else f"a poor message: {words[:500]!r}"
    except BaseException as error:
        said = repr(error)[:500]
    seconds = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"said": said, "seconds": seconds, "megabytes": grown, "did": did}

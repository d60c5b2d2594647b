"""The curl commands of docs/serve.md, in their order, against a server."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vhe.data.network import TextNetwork
from vhe.estimators import VHE
from vhe.web.start import start_service

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
TOKEN = "a-long-random-secret"  # in the page


def test_every_curl_command(network: TextNetwork, hasty: Any, serving: Any, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    ids = [f"p{k + 1}" for k in range(len(network))]
    model: VHE = hasty().fit(TextNetwork(ids, network.texts, network.links, network.labels))
    model.save(tmp_path / "model")
    lines = re.findall(r"^curl .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 15
    answers = {}
    with serving(start_service(tmp_path / "model", writable=True), token=TOKEN) as site:
        for line in lines:
            words = shlex.split(line.replace("http://127.0.0.1:8765/", site.url), comments=True)
            if TOKEN not in line:
                words += ["-H", f"Authorization: Bearer {TOKEN}"]
            words += ["-s", "-w", "\n%{http_code}"]
            words = [word.replace("a new abstract", network.texts[5]) for word in words]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            body, _, status = done.stdout.rpartition("\n")
            assert status == "200", f"{line}: {status} {body}"
            answers[line] = body
    (number,) = (body for line, body in answers.items() if "?id=p12" in line)
    assert json.loads(number)["number"] == 11

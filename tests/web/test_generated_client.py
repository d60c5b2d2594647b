"""A client that openapi-python-client generates from the OpenAPI document: every route, typed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vhe.estimators import VHE
from vhe.web.start import start_service

GENERATOR = "openapi-python-client==0.29.1"
TOKEN = "a-long-random-token"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the generator, whose dependencies differ from ours."""
    folder = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet", GENERATOR]
    if subprocess.run(install, check=False).returncode:
        pytest.skip("needs openapi-python-client from a package index")
    return folder


@pytest.mark.slow
def test_a_generated_client_reads_every_response(
    environment: Path, fitted: VHE, serving, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    with serving(start_service(tmp_path / "model", writable=True), token=TOKEN) as site:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        while not (
            site.get("/api/suggestions", **bearer)[1]["ready"]
            and site.get("/api/layout", **bearer)[1]["layout"] == "final"
        ):
            time.sleep(0.1)
        document = site.get("/openapi.json", **bearer)[1]
        (tmp_path / "openapi.json").write_text(json.dumps(document))
        command = [environment / "bin" / "openapi-python-client", "generate"]
        command += ["--path", "openapi.json", "--output-path", "generated"]
        subprocess.run(command, cwd=tmp_path, check=True)
        routes = tmp_path / "generated" / "vhe_client" / "api" / "default"
        program = Path(__file__).with_name("generated_client.py")
        used = program.read_text("utf-8")
        for route in routes.glob("[a-z]*.py"):
            assert f"    {route.stem},\n" in used
        subprocess.run(
            [environment / "bin" / "python", program, site.url.rstrip("/"), TOKEN],
            check=True,
            cwd=tmp_path / "generated",
            env={"PYTHONPATH": str(tmp_path / "generated")},
        )

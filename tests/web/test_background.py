"""Work in the background that cannot be started."""

import logging
from pathlib import Path

import pytest

from vhe.estimators import VHE
from vhe.web.start import start_service


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_process_that_cannot_be_started_is_a_warning(
    fitted: VHE,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    fitted.save(tmp_path / "model")
    service = start_service(tmp_path / "model")
    monkeypatch.setattr("subprocess.Popen", fail)
    caplog.set_level(logging.WARNING, "vhe.web")
    service._run("layout")
    service.close()
    assert "the layout is not computed: Resource temporarily unavailable" in caplog.text

"""Model folders of the first edition are refused with a message that says what to do."""

import shutil
from pathlib import Path

import pytest

from vhe.cli import main
from vhe.errors import VHEError
from vhe.estimators import load_model
from vhe.storage.folder import check_replaceable, read_folder, write_folder

FIRST_EDITION = Path(__file__).parent / "fixtures" / "0.1.0" / "model"


def test_a_model_of_the_first_edition_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    message = (
        f"{FIRST_EDITION}: written by the first edition of vhe (format 1); fit the model again"
    )
    with pytest.raises(VHEError) as refused:
        load_model(FIRST_EDITION)
    assert str(refused.value) == message
    assert main(["suggest", str(FIRST_EDITION), "v0"]) == 2
    assert message in capfd.readouterr().err


def test_a_model_of_the_first_edition_may_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(FIRST_EDITION, folder)
    check_replaceable(folder)
    write_folder(folder, {"a": b"a"}, "model")
    assert read_folder(folder, "model") == {"a": b"a"}

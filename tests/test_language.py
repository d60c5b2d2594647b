"""Phrases that a reader must read twice do not come back; language is that of the field."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PHRASES = {  # what not to write: what to write
    r"where chance starts": "random seed",
    r"\b(is|are|was|were) told\b": "is predicted, is given, is reported",
    r"as many links as non-links": "balanced classes",
    r"climbs? the bound": "optimises the ELBO",
    r"numbers (each|a vertex|a word)": "d-dimensional",
    r"\ba (file|verb|row|page|word) a (file|method|verb|row|word)\b": "one file per method",
    r"\bwhole numbers?\b": "integer",
    r"\bhas to be an?\b": "must be",
    r"\bgo(es)? on with\b": "resume",
    r"\bnewcomers?\b": "new vertices, new users",
    r"\bresidents\b": "the training graph",
    r"\b(a|the last) look\b": "validation, evaluation",
    r"without learning it anew": "without retraining",
    r"\bat hand\b": "available",
    r"\bone idea a file\b": "one idea per file",
    r"\bis not there\b": "unknown, missing",
    r"\bdear\b": "large, expensive",
    r"\bis silent\b": "is empty, prints nothing",
    r"\b(the command|vhe|it|which) tells\b": "reports, prints, shows",
    r"its ending is": "the format is inferred from the extension",
    r"\bwhen left out\b": "default:",
    r"\bnot here yet\b": "not downloaded",
    r"answers this machine alone|asks nothing of any other": "binds to localhost",
    r"\btakes? turns\b": "interleaved runs",
    r"one who knows the answers": "an oracle that sees the test edges",
    r"nothing at this address|went wrong here": "Not found, Internal server error",
    r"find its place|no text has a word": "Locate, no tokens found",
    r"whatever validation says": "without early stopping",
}
FILES = sorted(
    path
    for pattern in (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "docs/**/*.md",
        "examples/**/*",
        "src/vhe/**/*",
        "benchmarks/*.py",
        ".github/**/*",
    )
    for path in ROOT.glob(pattern)
    if path.suffix in {".md", ".py", ".js", ".html", ".css", ".yml", ".c", ".h", ".ipynb"}
    and path.name != "log.md"  # a record, not rewritten
)


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_does_not_come_back(phrase: str) -> None:
    pattern = re.compile(phrase, re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"write {PHRASES[phrase]!r} instead:\n" + "\n".join(found)

"""Check that the target of every local link in the documentation exists: file and heading."""

import re
import sys
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)


def prose(document: Path) -> str:
    """The text of a document without its code blocks, whose brackets are not links."""
    return FENCE.sub("", document.read_text(encoding="utf-8"))


def anchors(document: Path) -> set[str]:
    """The anchors of the headings of a Markdown page."""
    headings = HEADING.findall(prose(document))
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(root: Path) -> list[str]:
    """A message for each broken link."""
    errors = []
    for document in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for target in LINK.findall(prose(document)):
            if re.match(r"[a-z]+:", target):  # external links are not checked
                continue
            path, _, anchor = target.partition("#")
            page = (document.parent / path).resolve() if path else document
            name = document.relative_to(root)
            if not page.exists():
                errors.append(f"{name}: {path} does not exist")
            elif anchor and page.suffix == ".md" and anchor not in anchors(page):
                errors.append(f"{name}: {path or name} has no heading #{anchor}")
    return errors


if __name__ == "__main__":
    errors = broken_links(Path(__file__).resolve().parent.parent)
    print("\n".join(errors) or "no broken links")
    sys.exit(1 if errors else 0)

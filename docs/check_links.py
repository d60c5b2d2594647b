"""Checks that every local link in the documents leads to a file and a heading that exist."""

import re
import sys
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)


def prose(document: Path) -> str:
    """The text of a document without its code blocks, where brackets are no links."""
    return FENCE.sub("", document.read_text(encoding="utf-8"))


def anchors(document: Path) -> set[str]:
    """The anchors that a Markdown page gives its headings: lower case, words joined by hyphens."""
    headings = HEADING.findall(prose(document))
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(root: Path) -> list[str]:
    """A sentence for each link that leads nowhere."""
    faults = []
    for document in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for target in LINK.findall(prose(document)):
            if re.match(r"[a-z]+:", target):  # another host is not ours to check
                continue
            path, _, anchor = target.partition("#")
            page = (document.parent / path).resolve() if path else document
            place = document.relative_to(root)
            if not page.exists():
                faults.append(f"{place}: there is no {path}")
            elif anchor and page.suffix == ".md" and anchor not in anchors(page):
                faults.append(f"{place}: {path or place} has no heading #{anchor}")
    return faults


if __name__ == "__main__":
    faults = broken_links(Path(__file__).resolve().parent.parent)
    print("\n".join(faults) or "every local link leads somewhere")
    sys.exit(1 if faults else 0)

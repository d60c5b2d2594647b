"""Tables of decisions as CSV and as a Markdown checklist."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from vhe.runtime.messages import markdown_code, spreadsheet_cells

COLUMNS = ("source", "target", "state", "probability", "decided")
HEADINGS = {
    "accepted": "Accepted links",
    "postponed": "Postponed links",
    "rejected": "Rejected links",
}


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """One row per decision; cells that a spreadsheet would run as formulas get an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(spreadsheet_cells([row[name] for name in COLUMNS]) for row in rows)
    return text.getvalue()


def markdown_checklist(rows: Sequence[dict[str, Any]]) -> str:
    """A list per state; a box is ticked if the link was accepted."""
    parts = []
    for state, heading in HEADINGS.items():
        found = [row for row in rows if row["state"] == state]
        if found:
            tick = "x" if state == "accepted" else " "
            lines = [
                f"- [{tick}] {markdown_code(row['source'])} and {markdown_code(row['target'])}: "
                f"{row['probability']:.3f}\n"
                for row in found
            ]
            parts.append(f"## {heading}\n\n{''.join(lines)}")
    return "\n".join(parts)

"""The ranked missing links as the server and the page have them."""

from typing import Any

ROWS = "#suggestions li > button"


def suggestions(site: Any, state: str = "open", **filters: Any) -> list[Any]:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    status, found = site.get(f"/api/suggestions?state={state}&limit=1000&{query}".replace(" ", "+"))
    assert status == 200
    return found["items"]  # type: ignore[no-any-return]


def pairs(items: list[Any]) -> list[list[str]]:
    return [[item["source"]["id"], item["target"]["id"]] for item in items]


def shown(page: Any) -> list[list[str]]:
    return page.evaluate(  # type: ignore[no-any-return]
        f"""[...document.querySelectorAll("{ROWS}")]
        .map((row) => [...row.querySelectorAll(".name")].map((name) => name.textContent))"""
    )


def decided(page: Any, words: str) -> None:
    page.locator("#status", has_text=words).wait_for()

"""The page about the interface for programs, made from its OpenAPI description."""

from __future__ import annotations

import json
from typing import Any

from vhe.web.figures import Html, escaped, joined, paragraph, table


def docs_page(openapi: dict[str, Any]) -> str:
    """Every route with its parameters and an example, as a page that asks for nothing elsewhere."""
    schemas = openapi.get("components", {}).get("schemas", {})
    routes = [
        _route(method, path, route, schemas)
        for path, methods in openapi["paths"].items()
        for method, route in methods.items()
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>The interface of vhe serve</title>
<link rel="stylesheet" href="page/map.css">
<link rel="stylesheet" href="page/explorer.css">
<script src="page/theme.js"></script>
</head>
<body class="docs">
<header><button type="button" id="theme"></button>
<h1>The interface for programs</h1>
<p class="lede">Every answer is JSON; what is refused says why in <code>error</code>. Vertices go by
their number, which <code>/api/vertices?id=ID</code> tells.
<a href="openapi.json">OpenAPI description</a> · <a href="./">Back to the map</a></p></header>
<main>
{joined(*routes)}
</main>
</body>
</html>
"""


def _route(method: str, path: str, route: dict[str, Any], schemas: dict[str, Any]) -> Html:
    rows = [
        (p["name"], _kind(p["schema"]), p["schema"].get("default", ""), p.get("description", ""))
        for p in route.get("parameters", ())
    ]
    example = f"curl 'http://127.0.0.1:8765{path}'"
    for name, value in {"number": 0, "source": 0, "target": 1}.items():
        example = example.replace(f"{{{name}}}", str(value))
    if path == "/api/map":
        example = example.replace("curl", "curl --compressed")
    if path == "/api/vertices":
        example = example.replace(path, f"{path}?q=graph&limit=3")
    if body := route.get("requestBody"):
        reference = body["content"]["application/json"]["schema"]["$ref"]
        fields = schemas[reference.rpartition("/")[2]]["properties"]
        rows += [
            (name, _kind(f), f.get("default", ""), f.get("description", ""))
            for name, f in fields.items()
        ]
        sent = json.dumps({"text": "graph embedding"})
        example += f" -H 'Content-Type: application/json' -d '{sent}'"
    pieces = [paragraph(f"{route['summary']}.")]
    if rows:
        pieces.append(table(["Name", "Kind", "Default", "Meaning"], rows))
    pieces.append(Html(f"<pre>{escaped(example)}</pre>"))
    heading = f"<h2><span>{method.upper()}</span> {escaped(path)}</h2>"
    return Html(f"<section>{heading}{joined(*pieces)}</section>")


def _kind(schema: dict[str, Any]) -> str:
    choices = schema.get("anyOf", [schema])
    return next((c["type"] for c in choices if c.get("type") not in (None, "null")), "")

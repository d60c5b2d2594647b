"""The documentation page of the HTTP API, generated from its OpenAPI description."""

from __future__ import annotations

import json
from typing import Any

from vhe.web.markup import Html, escaped, joined, paragraph, table
from vhe.web.templates import document, filled

EXAMPLE_VALUES = {"{number}": "0", "{source}": "0", "{target}": "1"}


def api_page(openapi: dict[str, Any]) -> bytes:
    """Every route with its parameters and an example."""
    schemas = openapi.get("components", {}).get("schemas", {})
    routes = [
        _route(method, path, route, schemas)
        for path, methods in openapi["paths"].items()
        for method, route in methods.items()
    ]
    return document(
        title="vhe serve: HTTP API", layout="api", body=filled("api.html", routes=joined(*routes))
    )


def _route(method: str, path: str, route: dict[str, Any], schemas: dict[str, Any]) -> Html:
    fields = [(p["name"], p["schema"], p) for p in route.get("parameters", ())]
    example = f"curl 'http://127.0.0.1:8765{path}'"
    for name, value in EXAMPLE_VALUES.items():
        example = example.replace(name, value)
    if path == "/api/map":
        example = example.replace("curl", "curl --compressed")
    if path == "/api/vertices":
        example = example.replace(path, f"{path}?q=graph&limit=3")
    if body := route.get("requestBody"):
        reference = body["content"]["application/json"]["schema"]["$ref"]
        properties = schemas[reference.rpartition("/")[2]]["properties"]
        fields += [(name, field, field) for name, field in properties.items()]
        sent = json.dumps({"text": "graph embedding"})
        example += f" -H 'Content-Type: application/json' -d '{sent}'"
    rows = [
        (name, _type(schema), schema.get("default", ""), described.get("description", ""))
        for name, schema, described in fields
    ]
    fragments = [paragraph(f"{route['summary']}.")]
    if rows:
        fragments.append(table(["Name", "Type", "Default", "Description"], rows))
    fragments.append(Html(f"<pre>{escaped(example)}</pre>"))
    heading = f"<h2><span>{method.upper()}</span> {escaped(path)}</h2>"
    return Html(f"<section>{heading}{joined(*fragments)}</section>")


def _type(schema: dict[str, Any]) -> str:
    choices = schema.get("anyOf", [schema])
    return next((c["type"] for c in choices if c.get("type") not in (None, "null")), "")

"""The routes of an OpenAPI document as the page of the HTTP API shows them."""

from __future__ import annotations

import json
import shlex
from typing import Any

Document = dict[str, Any]


def described_routes(document: Document) -> list[Document]:
    """Method, path, summary, fields and an example of every route."""
    return [
        {
            "method": method.upper(),
            "path": path,
            "summary": route["summary"],
            "fields": [*_parameters(route), *_body_fields(route, document)],
            "example": _example(method.upper(), path, route, document),
        }
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]


def _parameters(route: Document) -> list[Document]:
    return [_field(p["name"], p["schema"], p["description"]) for p in route.get("parameters", [])]


def _body_fields(route: Document, document: Document) -> list[Document]:
    properties = _body(route, document).get("properties", {})
    return [
        _field(name, schema, schema.get("description", "")) for name, schema in properties.items()
    ]


def _body(route: Document, document: Document) -> Document:
    """The schema of the request body; empty if there is none."""
    if "requestBody" not in route:
        return {}
    schema: Document = route["requestBody"]["content"]["application/json"]["schema"]
    found: Document = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _field(name: str, schema: Document, description: str) -> Document:
    return {
        "name": name,
        "type": _type(schema),
        "default": "" if schema.get("default") is None else json.dumps(schema["default"]),
        "description": description,
    }


def _type(schema: Document) -> str:
    """The type of a value in a few words; that it may be null is not said.

    >>> _type({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]})
    'array of integer'
    """
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(
            dict.fromkeys(_type(s) for s in schema["anyOf"] if s != {"type": "null"})
        )
    if "const" in schema:
        return str(schema["const"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema["type"] == "array" and "items" in schema:
        return f"array of {_type(schema['items'])}"
    return str(schema["type"])


def _example(method: str, path: str, route: Document, document: Document) -> str:
    """A command that sends such a request."""
    query = ""
    for k, parameter in enumerate(route.get("parameters", [])):
        path = path.replace(f"{{{parameter['name']}}}", str(k))
        if values := parameter["schema"].get("examples"):
            query = f"?{parameter['name']}={values[0]}"
    words = ["curl", f"http://127.0.0.1:8765{path}{query}"]
    if method != "GET":
        words += ["-X", method]
    if body := _body(route, document).get("example"):
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return shlex.join(words)

"""Write the references of Python and REST as pages, from docstrings and OpenAPI.

python .ci/reference.py FOLDER
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

# what a user's script may import, in the order of the page
MODULES = {
    "afterslip": "Campaigns, client, results",
    "afterslip.client.campaign": "A campaign on a server",
    "afterslip.client.inversion": "An inversion on a server",
    "afterslip.client.async_client": "The same with an event loop",
    "afterslip.plot": "Figures",
    "afterslip.exports": "Exports",
    "afterslip.readers.series": "Readers of GNSS series",
}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def public(module: Any) -> dict[str, Any]:
    """Return the public functions and classes of a module that are ours."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    ]
    found = {name: getattr(module, name) for name in names if name[0] != "_"}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }


def entry(name: str, value: Any, level: int) -> list[str]:
    """Return heading, signature and docstring."""
    try:
        signature = str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        signature = ""
    if not signature or len(signature) > 400:  # fields of a schema: docs/spec.md
        signature = "(…)"
    text = inspect.getdoc(value) or ""
    text = SECTION.sub(r"**\1**\n", text)
    # a numpy list "name : meaning" is one item a line
    text = re.sub(r"^(\w[\w, ]*) : ", r"- `\1`: ", text, flags=re.MULTILINE)
    lines = text.replace("``", "`").replace("<", "&lt;").splitlines()
    code = f"```python\n{name}{signature}\n```"
    return ["", "#" * level + f" {name}", "", code, "", *lines, ""]


def python_page() -> str:
    """Return the page of the Python package."""
    out = [
        "# Python reference",
        "",
        "Made from the docstrings. A walk: [Python](python.md).",
    ]
    done = set()
    for name, title in MODULES.items():
        out += ["", f"## {name}", "", title + ".", ""]
        for key, value in public(importlib.import_module(name)).items():
            if value in done:
                continue
            done.add(value)
            out += entry(key, value, 3)
            if not inspect.isclass(value) or issubclass(value, Exception):
                continue
            for part, member in vars(value).items():
                function = member.fget if isinstance(member, property) else member
                function = getattr(function, "__func__", function)
                if part[0] != "_" and inspect.isfunction(function):
                    out += entry(part, function, 4)
    return "\n".join(out) + "\n"


def kind(schema: dict[str, Any]) -> str:
    """Return the type of a field in a word or two, with its bounds."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(kind(part) for part in schema[key]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    signs = {
        "minimum": "≥",
        "maximum": "≤",
        "exclusiveMinimum": "&gt;",
        "exclusiveMaximum": "&lt;",
    }
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    return ", ".join([str(schema.get("type", "any")), *bounds])


def cell(text: str) -> str:
    """Return a text that may stand in a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")


def rest_page(api: dict[str, Any]) -> str:
    """Return the page of the REST interface."""
    out = [
        "# REST reference",
        "",
        "Made from `/openapi.json`. A walk: [REST](api.md).",
        "",
    ]
    for path, item in api["paths"].items():
        for method, operation in item.items():
            summary = operation.get("description") or operation.get("summary", "")
            out += [f"## {method.upper()} {path}", "", cell(summary), ""]
            rows = [
                f"| `{p['name']}` | {p['in']} | {kind(p.get('schema', {}))} "
                f"| {cell(p.get('description', ''))} |"
                for p in operation.get("parameters", [])
            ]
            if rows:
                out += [
                    "| parameter | in | type | meaning |",
                    "|---|---|---|---|",
                    *rows,
                    "",
                ]
            body = operation.get("requestBody", {}).get("content", {})
            out += [
                f"Body, `{t}`: {kind(c.get('schema', {}))}" for t, c in body.items()
            ]
            out += ["", "| status | answer |", "|---|---|"]
            for status, answer in operation["responses"].items():
                content = answer.get("content", {})
                types = [
                    f"`{t}` {kind(c.get('schema', {}))}" for t, c in content.items()
                ]
                said = ", ".join(types) or cell(answer.get("description", ""))
                out.append(f"| {status} | {said} |")
            out.append("")
    out += ["## Schemas", ""]
    for name, schema in sorted(api["components"]["schemas"].items()):
        out += [f"### {name}", "", cell(schema.get("description", "")), ""]
        fields = schema.get("properties", {})
        if not fields:
            out += [kind(schema), ""]
            continue
        out += ["| field | type | meaning |", "|---|---|---|"]
        for field, value in fields.items():
            star = " (always)" if field in schema.get("required", []) else ""
            meaning = cell(value.get("description", ""))
            out.append(f"| `{field}`{star} | {kind(value)} | {meaning} |")
        out.append("")
    return "\n".join(out) + "\n"


def main() -> None:
    """Write both pages."""
    from afterslip_service.main import create_app
    from afterslip_service.settings import Settings

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(store=Path(place) / "store", database=f"{place}/db.sqlite")
        api = create_app(settings, placement=None).openapi()
    (folder / "reference-python.md").write_text(python_page())
    (folder / "reference-rest.md").write_text(rest_page(api))


if __name__ == "__main__":
    main()

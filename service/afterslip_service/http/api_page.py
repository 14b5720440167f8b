"""``/docs``: the operations as one page without scripts, from OpenAPI."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>afterslip API</title>
  <link rel="icon" href="/dashboard/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/dashboard/style.css">
</head>
<body>
  <header class="top"><a class="brand" href="/">
    <img src="/dashboard/icon.svg" alt="" width="26" height="26"><span>afterslip</span>
  </a><nav aria-label="Main"><a href="/">Campaigns</a></nav></header>
  <main>
  <div class="head"><div class="grow"><h1>API {version}</h1>
  <div class="sub">All of it for programs: <a href="/openapi.json">openapi.json</a>.
  Errors are RFC 9457 problems; lists are paged by <code>cursor</code>.
  </div></div></div>
  {sections}
  </main>
</body>
</html>
"""


@router.get("/docs")
def reference(request: Request) -> HTMLResponse:
    """Serve the page."""
    page = render(request.app.openapi())
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return HTMLResponse(page, headers=headers)


def render(schema: dict[str, Any]) -> str:
    """Return the page of a schema."""
    by_tag: dict[str, list[str]] = {}
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            tag = operation.get("tags", ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method, path, operation))
    sections = "".join(
        f'<section class="card"><h2>{escape(tag)}</h2>{"".join(rows)}</section>'
        for tag, rows in by_tag.items()
    )
    # not by format(): a description may hold braces
    page = PAGE.replace("{version}", escape(schema["info"]["version"]))
    return page.replace("{sections}", sections)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        _row(
            f"{parameter['in']} {parameter['name']}",
            parameter.get("description") or parameter["schema"].get("description", ""),
        )
        for parameter in operation.get("parameters", [])
        if parameter["in"] != "path"
    ]
    rows += [
        _row(f"body {media}", _kind(body.get("schema", {})))
        for media, body in operation.get("requestBody", {}).get("content", {}).items()
    ]
    rows += [
        _row(status, answer["description"])
        for status, answer in sorted(operation["responses"].items())
    ]
    role = operation.get("x-role")
    who = f" · {escape(role)}" if role else ""
    text = escape(operation.get("description") or operation.get("summary", ""))
    return (
        f"<details><summary><code>{method.upper()} {escape(path)}</code></summary>"
        f'<p class="sub">{text}{who}</p>'
        f'<div class="scroll"><table>{"".join(rows)}</table></div></details>'
    )


def _row(name: str, text: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>"


def _kind(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", schema.get("type", ""))).rpartition("/")[2]

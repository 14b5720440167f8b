"""OpenAPI, the contract: specs, problems, roles and credentials in full."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from afterslip.physics.registry import find, installed
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip_service.http.access import COOKIE, needed
from afterslip_service.http.meanings import describe
from afterslip_service.http.paths import PUBLIC, SESSION
from afterslip_service.http.problems import MEDIA

REF = "#/components/schemas/{model}"
_REFERRED = re.compile(r'"#/components/schemas/(\w+)"')
PROBLEM = {"$ref": "#/components/schemas/Problem"}
# what any request may be answered, whatever it asks for
ANY = (400, 421, 503)
# an Allow header stands beside 405, but a method that is not there has no operation
GUARDED = (401, 403, 429)
WITH_BODY = (408, 413, 415, 422)
SECURITY = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "a token, where authentication is on",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "of the page; changes also need X-CSRF-Token",
    },
}


def openapi(
    app: FastAPI, bodies: Mapping[str, type[BaseModel]] | None = None
) -> dict[str, Any]:
    """Return OpenAPI with the specs' own schemas, whose checks are not FastAPI's.

    Parameters
    ----------
    bodies : models of further bodies that routes check themselves, by the names of
        their schemas.
    """
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
        )
        _add_specs(schema["components"]["schemas"], bodies or {})
        describe(schema["components"]["schemas"])
        schema["components"]["securitySchemes"] = SECURITY
        for path, item in schema["paths"].items():
            for method, operation in item.items():
                _complete(operation, path, method)
        _require_answers(schema)
        app.openapi_schema = schema
    return app.openapi_schema


def _add_specs(known: dict[str, Any], bodies: Mapping[str, type[BaseModel]]) -> None:
    request = _schema(Inversion)
    request["properties"]["campaign"] = {"type": "string"}
    request["required"] = [*request.get("required", []), "campaign"]
    data = _schema(Dataset)
    data["properties"]["csv"] = {"type": "string"}
    data["required"] = ["name"]
    # generators of clients name their classes by it, and want each name once
    request["title"], data["title"] = "InversionRequest", "DatasetRequest"
    schemas = {
        "InversionRequest": request,
        "DatasetRequest": data,
    }
    specs = [find(name).spec for name in installed()]
    schemas |= {spec.__name__: _schema(spec) for spec in specs}
    refs = [{"$ref": REF.format(model=spec.__name__)} for spec in specs]
    # the physics of a spec tells which of them it is
    known["CampaignSpec"] = refs[0] if len(refs) == 1 else {"anyOf": refs}
    for name, model in bodies.items():
        schemas[name] = _schema(model)
    for part in schemas.values():
        known |= part.pop("$defs", {})
    known |= schemas


def _require_answers(schema: dict[str, Any]) -> None:
    """Say of what is only sent that it always has all its fields.

    A field with a default may be left out of a request, but never is of an answer.
    """
    known = schema["components"]["schemas"]
    operations = [o for item in schema["paths"].values() for o in item.values()]
    taken = _named(known, [o.get("requestBody", {}) for o in operations])
    sent = _named(known, [o["responses"] for o in operations])
    for name in sent - taken:
        if "properties" in known[name]:
            known[name]["required"] = list(known[name]["properties"])
    # FastAPI's own errors, whose place problems have taken
    for name in ("HTTPValidationError", "ValidationError"):
        known.pop(name, None)


def _named(known: Mapping[str, Any], parts: Iterable[Any]) -> set[str]:
    """Return the names of the schemas that parts refer to, directly or by others."""
    found: set[str] = set()
    todo = list(parts)
    while todo:
        new = set(_REFERRED.findall(json.dumps(todo.pop()))) - found
        found |= new
        todo += [known[name] for name in new]
    return found


def _plain_bodies(body: dict[str, Any]) -> None:
    """Leave the reference alone where FastAPI's type of the parameter stands beside."""
    for content in body["content"].values():
        if "$ref" in content["schema"]:
            content["schema"] = {"$ref": content["schema"]["$ref"]}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(ref_template=REF)


def _complete(operation: dict[str, Any], path: str, method: str) -> None:
    """Add what the middleware may answer, and who may ask."""
    statuses = [*ANY]
    if path not in PUBLIC:
        operation["security"] = [{"token": []}, {"session": []}]
        operation["x-role"] = needed(operation, method.upper()).value
        statuses += GUARDED
    elif path == SESSION:
        statuses += GUARDED
    if "requestBody" in operation:
        statuses += WITH_BODY
        _plain_bodies(operation["requestBody"])
    for status in statuses:
        operation["responses"].setdefault(
            str(status),
            {
                "description": HTTPStatus(status).phrase,
                "content": {MEDIA: {"schema": PROBLEM}},
            },
        )
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if content.get(MEDIA) == {}:
            # a problem is not also sent as plain JSON
            content.pop("application/json", None)
            content[MEDIA] = {"schema": PROBLEM}
        if status == "422" and MEDIA not in content:
            answer["content"] = {MEDIA: {"schema": PROBLEM}}

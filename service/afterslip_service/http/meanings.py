"""What fields of answers mean whose models say nothing of their own, and examples.

Most are the same in every answer; a generated client has them as its documentation.
"""

from __future__ import annotations

from typing import Any

# field → meaning; "Schema.field" where a schema's differs
MEANINGS = {
    "action": "what was done",
    "advice": "what helps",
    "attempts": "tries so far",
    "GroupDetail.attempts": "every try, oldest first",
    "campaign": "id of the campaign",
    "count": "how many",
    "created_at": "when it was made, UTC",
    "csv": "observations as text, in place of `file`",
    "ctx": "particulars of the check",
    "data": "numbers, in the order of `dims`, as nested lists; null: not stored yet",
    "detail": "in words",
    "digest": "SHA-256 of the content that decides the numbers",
    "dims": "names of the dimensions of `data`",
    "epoch": "time after the event, where lines give none",
    "error": "why it failed, null where it did not",
    "error_class": "one word for the kind of failure",
    "errors": "what is wrong, by path",
    "events": "kinds of events that are sent",
    "expires_at": "when it ends to be valid, UTC; null: never",
    "failures": "what failed and what helps, by class",
    "file": "reference of the file, `sha256:…`",
    "finished_at": "when it ended, UTC",
    "group": "its number",
    "TimeResponse.group": "seconds that a group takes, by the median",
    "groups": "how many groups of four unit sources",
    "high": "of a group, by the slowest of those campaigns",
    "id": "identifier",
    "index": "its number",
    "input": "what was sent",
    "instance": "path of the request",
    "inversions": "ids of its inversions, oldest first",
    "items": "those of this page",
    "iterations": "of the linear solver, in all",
    "lat": "degrees north, in a geographic frame",
    "links": "paths of what belongs to it",
    "loc": "where in the request",
    "lon": "degrees east, in a geographic frame",
    "message": "in words",
    "model": "seconds that the model takes to build",
    "msg": "in words",
    "n_observations": "lines of the file",
    "n_sources": "unit sources",
    "name": "its name",
    "next": "send it as `cursor` for the next page; null: there is none",
    "number": "counted from 1",
    "of": "of how many",
    "ok": "whether it works",
    "owner": "user that made it",
    "parts": "each part of the service",
    "path": "place in the spec",
    "hint": "what to do about it",
    "physics": "what is computed",
    "progress": "groups by state",
    "queued_at": "when it was put in the queue, UTC",
    "ready": "whether all parts work",
    "ref": "name it so in a spec",
    "request": "what was asked, with every default",
    "residual": "largest relative residual of its solves",
    "reuse": "what was taken from earlier campaigns, and what not",
    "reused": "how many were copied",
    "revoked_at": "when it was revoked, UTC; null: it was not",
    "role": "what it may do: viewer, submitter, operator or admin",
    "seconds": "that the accepted try took",
    "shape": "of `data`",
    "sigma": "m; used where the file has none",
    "size": "bytes",
    "slots": "groups that it solves at a time",
    "solves": "elastic solves",
    "sources": "numbers of the unit sources",
    "PlanResponse.sources": "how many unit sources",
    "ReuseResponse.sources": "of each unit source where it came from",
    "space_error": "estimated error of the mesh, m per m, (source, time, station)",
    "spec": "canonical form, with every default",
    "started_at": "when it began, UTC",
    "state": "where it stands",
    "stations": "names, in the order of `data`",
    "SampleRequest.stations": "places by name: lon and lat, or x_km and y_km",
    "stats": "solves, iterations and seconds",
    "status": "HTTP status",
    "Health.status": "`ok` while the process answers",
    "time_yr": "years after the event, in the order of `data`",
    "times": "with their units, such as `30 d` or `1 yr`",
    "title": "kind of problem",
    "token": "the secret; shown once",
    "AttemptResponse.token": "of the attempt; a later one fences it",
    "type": "kind of problem",
    "unknowns": "of each elastic solve; null where no engine here can say",
    "until": "when that ends, UTC; null: not known",
    "updated_at": "when its state changed last, UTC",
    "url": "where it is sent",
    "user": "whose it is",
    "waiting": "why nothing of it runs, the nearest reason first",
    "warnings": "what is allowed and perhaps not meant",
    "worker": "name of the worker",
    "address": "of the worker's process",
    "facts": "cores, memory, GPUs, versions",
    "x_km": "km east of the origin, in a local frame",
    "y_km": "km north of the origin, in a local frame",
    "ProgressResponse.waiting": "groups that are waiting",
    "ProgressResponse.queued": "groups that are queued",
    "ProgressResponse.running": "groups that are running",
    "ProgressResponse.stored": "groups that are stored",
    "ProgressResponse.accepted": "groups that are accepted",
    "ProgressResponse.failed": "groups that are failed",
    "ProgressResponse.cancelled": "groups that are cancelled",
    "ProgressResponse.total": "groups in all",
}

_SPEC: dict[str, Any] = {
    "name": "thrust",
    "model": {
        "domain": {"x": [-300, 300], "y": [-300, 300], "depth": 250},
        "layers": [
            {"name": "crust", "bottom": 30, "vp": 6.2, "vs": 3.6, "rho": 2750},
            {
                "name": "mantle", "bottom": 250, "vp": 8.0, "vs": 4.5, "rho": 3300,
                "rheology": {"maxwell": {"viscosity": 1e19}},
            },
        ],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0, "y": 0, "top": 5, "strike": 0, "dip": 30,
                    "length": 80, "width": 60,
                },
            }
        ],
        "mesh": {"size": {"fault": 8, "far": 80}},
    },
    "sources": {"fault": "main", "along_strike": 4, "down_dip": 3},
    "times": {"until": "5 yr", "output": ["0 d", "1 yr", "5 yr"]},
}  # fmt: skip

# schema → a body that the service takes as it is, but for ids
EXAMPLES: dict[str, Any] = {
    "ViscoelasticCampaign": _SPEC,
    "DatasetRequest": {
        "name": "gnss",
        "csv": "station,x_km,y_km,east,north,up\nA,-20,-30,0.02,0.01,0.01\n"
        "B,30,10,-0.08,0.04,0.20\n",
        "sigma": {"horizontal": 0.003, "vertical": 0.01},
    },
    "InversionRequest": {
        "campaign": "CAMPAIGN",
        "name": "coseismic",
        "datasets": ["gnss"],
        "sign": {"dip": "positive"},
    },
    "SampleRequest": {
        "stations": {"A": {"x_km": 20, "y_km": 10}},
        "times": ["0 d", "1 yr"],
    },
    "SignIn": {"token": "afs_…"},
    "CampaignPatch": {"priority": 5, "paused": False},
}


def describe(schemas: dict[str, Any]) -> None:
    """Add the meanings of fields that have none, and examples."""
    for name, schema in schemas.items():
        for field, value in schema.get("properties", {}).items():
            if "description" in value:
                continue
            meaning = MEANINGS.get(f"{name}.{field}", MEANINGS.get(field))
            if meaning is not None:
                value["description"] = meaning
        if name in EXAMPLES:
            schema["examples"] = [EXAMPLES[name]]

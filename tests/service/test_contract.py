"""The running service keeps to its OpenAPI, whatever it is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
import schemathesis
import tiny_worker
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from afterslip_service import clock
from afterslip_service.db import tokens
from afterslip_service.engine.access import Role

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# a stream never ends by itself; test_stream.py and test_access.py have them
STREAMS = "/events"
# these end what the others use, so they come last
LAST = {"delete": 2, "post": 1}


@pytest.fixture
def fuzz(serve, database):
    """Send requests made from the schema to every operation of a service."""
    # how many requests may come is test_access.py's question
    server = serve(auth=True, rate=0)
    with database.write() as connection:
        _, secret = tokens.create(
            connection,
            name="fuzz",
            user="fuzz",
            role=Role.ADMIN,
            expires_at=clock.now() + timedelta(days=1),
        )
    signed = {"Authorization": f"Bearer {secret}"}
    made = httpx.post(
        f"{server.url}/v1/campaigns", json=tiny_worker.spec(), headers=signed
    ).json()

    def run(examples, **headers):
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        everything: list[Any] = list(schema.get_all_operations())
        operations = [
            found.ok() for found in everything if not found.ok().path.endswith(STREAMS)
        ]
        operations.sort(key=lambda operation: LAST.get(operation.method, 0))
        statuses = {}
        for operation in operations:
            _fuzz(operation, examples, server.url, headers or signed, made, statuses)
        return operations, statuses

    return run


def _fuzz(operation, examples, url, headers, made, statuses):
    cases = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.booleans())
    def check(case, real):
        # at least half of the requests reach something that is there
        if real and "campaign" in case.path_parameters:
            case.path_parameters["campaign"] = made["id"]
        answer = case.call_and_validate(
            base_url=url, headers=headers, checks=CHECKS, timeout=20
        )
        key = (operation.method, operation.path)
        statuses.setdefault(key, set()).add(answer.status_code)

    check()


@pytest.mark.databases("sqlite")
def test_every_operation_keeps_to_the_contract(fuzz):
    operations, statuses = fuzz(4)
    assert len(statuses) == len(operations)
    # something was let in, not only turned away
    reached = {
        key for key, answered in statuses.items() if any(s < 300 for s in answered)
    }
    assert {("get", "/v1/campaigns"), ("post", "/v1/files")} <= reached


@pytest.mark.slow
@pytest.mark.databases("postgresql")
def test_anonymous_request_is_answered_as_documented(fuzz):
    _, statuses = fuzz(2, Authorization="Bearer afs_nobody")
    for (_, path), answered in statuses.items():
        if path not in {"/healthz", "/readyz"}:
            assert answered <= {400, 401, 413, 415, 422}, (path, answered)


@pytest.mark.slow
@pytest.mark.databases("postgresql")
@pytest.mark.timeout(1800)
def test_contract_holds_in_a_long_run_on_postgresql(fuzz):
    operations, statuses = fuzz(50)
    assert len(statuses) == len(operations)

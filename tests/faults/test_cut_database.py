"""PostgreSQL goes away for some seconds, and comes back."""

from __future__ import annotations

import time

import arena
import psycopg
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

AWAY_S = 5.0


def test_campaign_goes_on_after_the_database_was_away(
    new_service, postgres_server, postgres_url, undisturbed, with_models, record
):
    service = new_service(postgres_url)
    with_models(service.store)
    service.start()
    campaign = service.submit()
    service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, f"PostgreSQL away for {AWAY_S:g} s")
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        service.go_on()
        try:
            end = time.monotonic() + AWAY_S
            while time.monotonic() < end:
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = %s",
                    [name],
                )
                time.sleep(0.1)
        finally:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 0
    assert row["result"] == "bitwise"

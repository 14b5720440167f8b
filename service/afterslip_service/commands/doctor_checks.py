"""What ``afterslip doctor`` looks at around a service: clock, keys, workers, spool."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from afterslip.client.credentials import resolve
from afterslip.client.errors import CredentialError
from afterslip_common.observe import telemetry
from afterslip_service.db.session import Database, moment
from afterslip_service.errors import ServiceError
from afterslip_service.settings import Settings
from afterslip_workers import entry

GIB = 1024**3
SMALL_DISK = 5 * GIB
# s; leases go by the database's clock, but what people read comes from both
SKEW_S = 2.0
SOON_DAYS = 21


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``wrong`` means that nothing will run."""

    name: str
    state: Literal["ok", "note", "wrong"]
    detail: str
    hint: str = ""


def gib(size: float) -> str:
    """Return bytes as people read them."""
    return f"{size / GIB:.1f} GiB"


def checks(settings: Settings) -> Iterator[Finding]:
    """Look at what the settings name besides database and store."""
    if settings.tls is not None:
        yield certificate(*settings.tls)
    if settings.scheduler != "local":
        yield scheduler(settings.scheduler)
    yield token()
    yield spool()
    if telemetry.wanted():
        yield traces()


def clock(database: Database) -> Finding:
    """Compare this machine's clock with the database's."""
    before = datetime.now(UTC)
    with database.read() as connection:
        theirs = moment(connection)
    after = datetime.now(UTC)
    skew = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if skew > SKEW_S:
        text = f"differs from the database's by {skew:.1f} s"
        return Finding("clock", "note", text, "let NTP set both")
    return Finding("clock", "ok", "agrees with the database's")


def certificate(public: Path, key: Path) -> Finding:
    """Say whether a server can show a certificate, and for how long."""
    try:
        ends = _expiry(public, key)
    except ssl.SSLCertVerificationError as error:
        text = f"{public}: {error.verify_message}"
        return Finding("TLS", "wrong", text, "renew it, then restart the service")
    except OSError as error:
        # also ssl.SSLError: no PEM, or a key of another certificate
        reason = error.strerror or str(error)
        text = f"{public}, {key}: {reason}"
        return Finding(
            "TLS", "wrong", text, "correct AFTERSLIP_TLS_CERTIFICATE and _KEY"
        )
    left = (ends - datetime.now(UTC)).days
    text = f"{public}: valid until {ends:%Y-%m-%d}"
    if left < SOON_DAYS:
        return Finding("TLS", "note", text, f"renew it: {left} days are left")
    return Finding("TLS", "ok", text)


def _expiry(public: Path, key: Path) -> datetime:
    """Shake hands with ourselves, which checks pair and dates of a certificate."""
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(public, key, password="")
    asks = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asks.check_hostname = False
    # any signer will do: only the certificate itself is looked at
    asks.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    asks.load_verify_locations(public)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asks.wrap_bio(back, there)
    server = shown.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    peer = client.getpeercert() or {}
    seconds = ssl.cert_time_to_seconds(str(peer["notAfter"]))
    return datetime.fromtimestamp(seconds, UTC)


def scheduler(address: str) -> Finding:
    """Say whether a Dask scheduler answers and has workers."""
    from afterslip_service.placement.cluster import Cluster

    try:
        cluster = Cluster(address)
    except ServiceError as error:
        return Finding("scheduler", "wrong", str(error), "or name another")
    try:
        trouble, slots = cluster.trouble(), cluster.slots()
    finally:
        cluster.close()
    if trouble is not None:
        return Finding("scheduler", "wrong", trouble)
    return Finding("scheduler", "ok", f"{address}: {slots} slots")


def token() -> Finding:
    """Say whether the file of the token can be used."""
    try:
        found = resolve(None)
    except CredentialError as error:
        return Finding("token", "wrong", str(error))
    return Finding("token", "ok", "read from its file" if found else "none in a file")


def spool() -> Finding:
    """Say whether results can wait on this machine."""
    try:
        folder, free = entry.spool_room()
    except OSError as error:
        hint = "correct its permissions, or set AFTERSLIP_SPOOL"
        text = f"{error.filename}: {error.strerror}"
        return Finding("spool", "wrong", text, hint)
    text = f"{gib(free)} free in {folder}"
    if free < SMALL_DISK:
        hint = "results that the store does not take need space: set AFTERSLIP_SPOOL"
        return Finding("spool", "note", text, hint)
    return Finding("spool", "ok", text)


def traces() -> Finding:
    """Say whether traces that are wanted can be made."""
    try:
        telemetry.start("doctor")
    except telemetry.TracesError as error:
        return Finding("traces", "wrong", str(error))
    telemetry.stop()
    return Finding("traces", "ok", "on")

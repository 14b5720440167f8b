"""Webhooks: what is reported, how it is signed, where it may go, when it goes again.

Messages and signatures are those of Standard Webhooks 1.0
(https://www.standardwebhooks.com), for which receivers find libraries.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlsplit

PREFIX = "whsec_"
LONGEST_URL = 2000
# after the last of them a message is given up
ATTEMPTS = 12
_GROWTH, _LONGEST_WAIT_S = 4.0, 6 * 3600.0
# IPv4 addresses inside IPv6 ones (RFC 6052), which a gateway would reach
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Event(StrEnum):
    """What a webhook reports."""

    CAMPAIGN_COMPLETE = "campaign.complete"
    CAMPAIGN_FAILED = "campaign.failed"
    INVERSION_COMPLETE = "inversion.complete"
    INVERSION_FAILED = "inversion.failed"


TEST = "test"


class DeliveryState(StrEnum):
    """Where a message stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a webhook is, taken apart."""

    tls: bool
    host: str
    port: int


def target(url: str) -> Target:
    """Take an address apart.

    Raises
    ------
    ValueError
        It is not one that a webhook may have; the message is for its user.
    """
    if len(url) > LONGEST_URL:
        raise ValueError(f"may have at most {LONGEST_URL} characters")
    if not url.isascii() or not url.isprintable() or set(url) & set(" \\"):
        raise ValueError("must be an address without spaces; encode other characters")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise ValueError(f"is no address: {error}") from None
    if parts.scheme not in ("https", "http") or not host:
        raise ValueError("must begin with https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password: requests are signed")
    if parts.fragment:
        raise ValueError("must not have a fragment (#)")
    tls = parts.scheme == "https"
    return Target(tls, host, port or (443 if tls else 80))


def refusal(address: str, networks: Sequence[str], *, tls: bool) -> str:
    """Say why nothing may be sent to an address; empty where it may.

    Parameters
    ----------
    networks : those that the operator allows, beside all public ones; also without TLS.
    """
    found: Address = ipaddress.ip_address(address.partition("%")[0])
    inner = _embedded(found)
    if any(inner in ipaddress.ip_network(network) for network in networks):
        return ""
    reached = {found, inner}
    if any(not a.is_global or a.is_multicast or a.is_reserved for a in reached):
        return f"{address} is not a public address (AFTERSLIP_WEBHOOK_NETWORKS)"
    return "" if tls else "must be https://, except in AFTERSLIP_WEBHOOK_NETWORKS"


def _embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


def event_of(kind: str, state: str) -> Event | None:
    """Return what webhooks report of an event of the service, if anything."""
    return {
        ("campaign.state", "complete"): Event.CAMPAIGN_COMPLETE,
        ("campaign.state", "failed"): Event.CAMPAIGN_FAILED,
        ("inversion.state", "accepted"): Event.INVERSION_COMPLETE,
        ("inversion.state", "failed"): Event.INVERSION_FAILED,
    }.get((kind, state))


def secret_of(key: bytes, identity: str) -> str:
    """Return a webhook's secret, which follows from the service's key."""
    derived = hmac.digest(key, f"afterslip webhook {identity}".encode(), "sha256")
    return PREFIX + base64.b64encode(derived).decode()


def digest(secret: str) -> str:
    """Return what is stored of a secret: enough to see that the key has changed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def signature(secret: str, identity: str, timestamp: int, body: bytes) -> str:
    """Return the header ``webhook-signature`` of a message: HMAC-SHA256."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{identity}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def wait(attempts: int, first: float) -> timedelta | None:
    """Return how long to wait after so many attempts; None: it is given up.

    Parameters
    ----------
    first : s after the first one; four times as long after each that follows.
    """
    if attempts >= ATTEMPTS:
        return None
    return timedelta(seconds=min(first * _GROWTH ** (attempts - 1), _LONGEST_WAIT_S))

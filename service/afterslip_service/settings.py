"""Settings, from the environment (prefix ``AFTERSLIP_``) or by hand."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from afterslip.cli.wording import plain_words
from afterslip.errors import Problem, SpecError
from afterslip_service.errors import BindRefusedError, SchedulerRefusedError
from afterslip_workers import entry


class Settings(BaseSettings):
    """Everything an operator may turn."""

    model_config = SettingsConfigDict(env_prefix="AFTERSLIP_", extra="ignore")

    database: str = Field(
        "afterslip.sqlite",
        description="SQLAlchemy URL, or the path of a SQLite file; if unset, "
        "afterslip.sqlite beside the folder of the store",
    )
    store: Path | str = Field(
        Path("afterslip-store"),
        description="folder that the service and all workers see at the same path, "
        "or s3://bucket/prefix with AWS_* in the environment",
    )
    files: Path | None = Field(
        None,
        description="folder in which a spec's relative paths are looked up; "
        "without it specs may only name uploaded files",
    )
    scheduler: str = Field(
        "local",
        description="`local` for a Dask cluster of our own, or tcp://host:port",
    )
    workers: int | None = Field(
        None, ge=1, description="workers of the local cluster; one a core if unset"
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port, 0 for any free one")
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="names besides loopback under which a proxy may reach us",
    )
    auth: bool = Field(
        False,
        description="`on`: every request needs a token; `off`: everybody who reaches "
        "the port is trusted, which only loopback addresses allow",
    )
    session_hours: float = Field(
        12.0, gt=0, le=24 * 366, description="h that the page stays signed in"
    )
    rate: float = Field(
        100.0,
        ge=0,
        description="requests/s of one token that may go on for ever, where "
        "authentication is on; 0 for no limit",
    )
    rate_burst: int = Field(2000, ge=1, description="requests that may come at once")
    tls_certificate: Path | None = Field(
        None, description="PEM file; with it and its key the server speaks TLS"
    )
    tls_key: Path | None = Field(None, description="PEM file of the certificate's key")
    backend: Literal["auto", "cpu", "gpu"] = "auto"
    tick: float = Field(0.5, gt=0, description="s between looks at the database")
    lease: float = Field(15.0, gt=0, description="s that a dispatcher's lease lasts")
    spool_wait: float = Field(
        24 * 3600.0,
        gt=0,
        description="s that a result may wait on its worker's disk for the store, "
        "before its group is solved again",
    )
    lost_after: float = Field(
        90.0, gt=0, description="s without a heartbeat after which an attempt is lost"
    )
    lost_limit: int = Field(
        3,
        ge=1,
        description="times that a group may lose its process or worker before it "
        "fails; more where machines are taken away at any time",
    )
    user_limit: int | None = Field(
        None,
        ge=1,
        description="groups of one user that may be under way at a time; unset: any",
    )
    attempt_timeout: float = Field(
        6 * 3600.0, gt=0, description="s that one attempt may take"
    )
    keep_progress: float = Field(
        3600.0, gt=0, description="s that progress events are retained"
    )
    scrub_rate: float = Field(
        20.0,
        ge=0,
        description="MB/s at which the leader reads the store to find damage; 0: never",
    )
    scrub_every: float = Field(
        24.0, gt=0, description="h from the beginning of one such reading to the next"
    )
    price: float | None = Field(
        None,
        ge=0,
        description="of an hour of one worker (of one GPU, on GPUs): plans then say "
        "what a campaign would cost",
    )
    currency: str = Field("EUR", max_length=8, description="of the price")
    webhook_key: Path | None = Field(
        None,
        description="file of 32 bytes or more from which the secrets of webhooks are "
        "made, for every process of the service; if unset, one beside the folder of "
        "the store is made",
    )
    webhook_networks: list[str] = Field(
        default_factory=list,
        description="networks such as 10.1.0.0/16 to which webhooks may be sent beside "
        "public addresses, there without TLS too",
    )
    webhook_retry: float = Field(
        10.0, gt=0, description="s until a webhook that failed is sent again"
    )
    max_upload: int = Field(2 * 1024**3, gt=0, description="bytes of one uploaded file")
    max_table: int = Field(
        128 * 1024**2, gt=0, description="bytes of one table or grid that a spec names"
    )
    max_mesh: int = Field(
        1024**3, gt=0, description="bytes of one mesh that a spec names"
    )
    max_elements: int = Field(
        200_000_000, gt=0, description="elements that a mesh may have, by its sizes"
    )
    max_sources: int = Field(20_000, gt=0, description="unit sources of one campaign")
    max_inversion: int = Field(
        64 * 1024**3, gt=0, description="bytes of memory that an inversion may need"
    )
    max_body: int = Field(
        16 * 1024**2,
        gt=0,
        description="bytes of one JSON request that gives a spec, data or a list; "
        "64 KiB of all others",
    )
    max_values: int = Field(
        500_000,
        gt=0,
        description="numbers, texts, lists and objects of one JSON request",
    )
    large_bodies: int = Field(
        2, ge=1, description="JSON requests above 64 KiB that are read at a time"
    )

    @property
    def tls(self) -> tuple[Path, Path] | None:
        """Certificate and key, None for plain HTTP."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        return self.tls_certificate, self.tls_key

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Complete the database; refuse half of a pair, which would mean no TLS."""
        if "database" not in self.model_fields_set and isinstance(self.store, Path):
            # wherever the service is started, the store finds its database
            self.database = str(self.store.absolute().parent / self.database)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together")
        return self

    @field_validator("store", mode="before")
    @classmethod
    def _folder_or_bucket(cls, value: Any) -> Any:
        """Keep a bucket's address as it is written; everything else is a folder."""
        if entry.is_bucket(value):
            return entry.open_store(value).name
        return Path(value).expanduser().absolute()

    @field_validator("webhook_networks")
    @classmethod
    def _are_networks(cls, value: list[str]) -> list[str]:
        for text in value:
            ipaddress.ip_network(text)
        return value

    @field_validator("files", "tls_certificate", "tls_key", "webhook_key")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        """Workers run elsewhere: a path must not hang on our working folder."""
        return None if value is None else value.expanduser().absolute()


def read_settings(**given: Any) -> Settings:
    """Return the settings; what is not given comes from the environment.

    Raises
    ------
    SpecError
        With each that is wrong, and where it comes from.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SpecError(
            [_problem(detail["loc"], detail, given) for detail in error.errors()]
        ) from None


def _problem(loc: tuple[Any, ...], detail: Any, given: dict[str, Any]) -> Problem:
    name = str(loc[0]) if loc else ""
    path = f"--{name}" if name in given else f"AFTERSLIP_{name.upper()}"
    value = detail["input"] if loc else None
    return Problem(path if loc else "settings", value, plain_words(detail["msg"]))


def check_bind(host: str, auth: bool = False) -> None:
    """Refuse an address that others can reach while authentication is off.

    Raises
    ------
    BindRefusedError
        If ``host`` is not a loopback address and there is no authentication.
    """
    if not (auth or loopback(host)):
        raise BindRefusedError(
            f"refusing to listen on {host!r}: there is no authentication, so everybody "
            "who reaches the port could read and cancel campaigns. Switch it on "
            "(AFTERSLIP_AUTH=on, `afterslip token create --role admin --database ...`),"
            " or listen on 127.0.0.1 and reach it through an SSH tunnel."
        )


def check_scheduler(address: str, auth: bool) -> str | None:
    """Refuse a scheduler without TLS on the network where tokens are asked for.

    Returns
    -------
    A warning, or None: other accounts of this machine reach a loopback port too.

    Raises
    ------
    SchedulerRefusedError
        If authentication is on and the address is neither TLS nor loopback.
    """
    if not auth or address == "local" or address.startswith("tls://"):
        return None
    reach = "anybody who reaches it runs code as the workers and the dispatcher"
    advice = (
        "start it with `dask scheduler --protocol tls` and certificates "
        "(docs/deployment.md), and name it tls://host:port"
    )
    host = address.rpartition("://")[2].rpartition(":")[0].strip("[]")
    if not loopback(host):
        raise SchedulerRefusedError(
            f"refusing the scheduler {address!r} with authentication on: it speaks no "
            f"TLS, so {reach}, without a token; {advice}"
        )
    return f"the scheduler {address!r} speaks no TLS: {reach}; {advice}"


def loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""What the deployment files promise, checked without a container engine."""

import os
import re
import subprocess
from pathlib import Path

import click
import pytest
import yaml
from typer.main import get_command

from afterslip.cli.main import app

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = [n for n, s in COMPOSE["services"].items() if "afterslip" in str(s["image"])]


def manifests():
    for path in sorted((ROOT / "deploy/kubernetes").glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def pods():
    for item in manifests():
        spec = item.get("spec", {})
        if item["kind"] == "Deployment":
            yield spec["template"]["spec"]
        if item["kind"] == "DaskCluster":
            yield from (spec[part]["spec"] for part in ("scheduler", "worker"))


def commands():
    for name in OURS:
        yield COMPOSE["services"][name]["command"]
    for pod in pods():
        yield from (container["args"] for container in pod["containers"])
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        line = re.search(r"^ExecStart=(.+)$", unit.read_text(), re.M)
        first, *rest = line.group(1).split()
        yield [Path(first).name, *rest]


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_commands_are_ones_that_the_command_line_knows(command):
    program, verb, *options = command
    if program == "dask":
        assert verb == "scheduler"
        return
    assert program == "afterslip"
    group = get_command(app)
    _, known, _ = group.resolve_command(click.Context(group), [verb])
    flags = {f for p in known.params for f in [*p.opts, *p.secondary_opts]}
    assert {o for o in options if o.startswith("--")} <= flags


@pytest.mark.parametrize("name", OURS)
def test_our_containers_run_unprivileged_and_read_secrets_from_files(name):
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    environment = service["environment"]
    assert environment["AFTERSLIP_AUTH"] == "on"
    assert not any("password" in str(v).lower() for v in environment.values())
    assert set(service["secrets"]) <= set(COMPOSE["secrets"])
    for value in environment.values():
        if str(value).startswith("/run/secrets/"):
            assert Path(value).name in service["secrets"]


def test_every_port_is_published_on_loopback_only():
    for service in COMPOSE["services"].values():
        assert all(p.startswith("127.0.0.1:") for p in service.get("ports", []))


def test_every_image_runs_as_another_user_than_root():
    stages = (ROOT / "deploy/docker/Dockerfile").read_text().split("FROM ")[1:]
    final = [stage for stage in stages if " AS wheel" not in stage]
    assert len(final) == 2
    for stage in final:
        users = re.findall(r"^USER (\S+)$", stage, re.M)
        assert users[-1] == "10001:10001"


def test_entrypoint_reads_a_secret_from_its_file(tmp_path):
    secret = tmp_path / "url"
    secret.write_text("sqlite:///a.sqlite\n")
    environment = {**os.environ, "AFTERSLIP_DATABASE_FILE": str(secret)}
    script = ROOT / "deploy/docker/entrypoint.sh"
    run = [script, "sh", "-c", 'echo "$AFTERSLIP_DATABASE ${AFTERSLIP_DATABASE_FILE-}"']
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.stdout == "sqlite:///a.sqlite \n"
    missing = {**environment, "AFTERSLIP_DATABASE_FILE": str(tmp_path / "none")}
    done = subprocess.run(run, env=missing, capture_output=True, text=True)
    assert done.returncode == 1
    assert "AFTERSLIP_DATABASE_FILE" in done.stderr


def test_pods_mount_only_volumes_that_they_declare_and_run_unprivileged():
    for pod in pods():
        declared = {volume["name"] for volume in pod["volumes"]}
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            mounts = {mount["name"] for mount in container["volumeMounts"]}
            assert mounts <= declared

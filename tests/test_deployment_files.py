"""What the deployment files promise, checked without a container engine."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
        assert line is not None
        first, *rest = line.group(1).split()
        yield [Path(first).name, *rest]


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_commands_are_ones_that_the_command_line_knows(command):
    program, verb, *options = command
    if program == "dask":
        assert verb == "scheduler"
        return
    assert program == "afterslip"
    group: Any = get_command(app)
    _, known, _ = group.resolve_command(click.Context(group), [verb])
    flags = {f for p in known.params for f in [*p.opts, *p.secondary_opts]}
    assert {o for o in options if o.startswith("--")} <= flags


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_container_is_hardened_and_limited(name):
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["pids_limit"] > 0
    assert service["mem_limit"]
    assert service["networks"]
    for folder in service.get("tmpfs", []):
        assert "size=" in folder


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_image_is_named_by_its_version_and_can_be_pinned(name):
    found = re.fullmatch(
        r"\$\{([A-Z_]+_IMAGE):-(.+)\}", COMPOSE["services"][name]["image"]
    )
    assert found is not None
    variable, image = found.groups()
    assert variable
    assert not image.endswith(":latest")
    if name not in OURS:
        assert re.search(r":.*\d+\D\d+", image)


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_secrets_are_files_and_every_container_has_those_that_it_names(name):
    service = COMPOSE["services"][name]
    given = set(service.get("secrets", []))
    assert given <= set(COMPOSE["secrets"])
    environment = service.get("environment", {})
    for key, value in environment.items():
        if "PASSWORD" in key or "SECRET" in key or key.endswith("_KEY"):
            assert str(value).startswith("/run/secrets/")
        if str(value).startswith("/run/secrets/"):
            assert Path(value).name in given
    if name in OURS:
        used = {Path(v).name for v in environment.values() if "/secrets/" in str(v)}
        assert used == given


def test_secrets_go_only_to_those_that_need_them():
    holders = {}
    for name, service in COMPOSE["services"].items():
        for secret in service.get("secrets", []):
            holders.setdefault(secret, set()).add(name)
    assert holders["database_url"] == {"api", "dispatcher"}
    for name in holders["database_url"]:
        assert COMPOSE["services"][name]["environment"]["AFTERSLIP_AUTH"] == "on"
    assert holders["database_password"] == {"database"}
    assert holders["dask_key"] == {"dispatcher", "scheduler", "worker", "worker-gpu"}
    assert holders["object_store_root_key"] == {"object-store", "object-store-setup"}
    assert "object-store" not in holders["object_store_key"]
    assert not any("ca.key" in s["file"] for s in COMPOSE["secrets"].values())


def test_workers_share_no_network_with_the_database():
    services = COMPOSE["services"]
    data = set(services["database"]["networks"])
    for name in ("worker", "worker-gpu", "scheduler", "prometheus", "grafana"):
        assert not data & set(services[name]["networks"])
    assert COMPOSE["networks"]["data"]["internal"] is True


@pytest.mark.parametrize("name", ["api", "dispatcher", "worker", "worker-gpu"])
def test_large_temporary_files_go_to_a_disk(name):
    service = COMPOSE["services"][name]
    folder = service["environment"]["TMPDIR"]
    assert folder in service["volumes"]
    assert not any(item.startswith(folder) for item in service["tmpfs"])


def test_account_of_the_service_may_use_one_bucket_only():
    policy = json.loads((ROOT / "deploy/object-store/policy.json").read_text())
    assert all(s["Effect"] == "Allow" for s in policy["Statement"])
    resources = {r for s in policy["Statement"] for r in s["Resource"]}
    assert resources == {"arn:aws:s3:::afterslip", "arn:aws:s3:::afterslip/*"}
    assert not any("*" in a for s in policy["Statement"] for a in s["Action"])


def test_secrets_are_made_and_the_authority_is_stored_apart(tmp_path):
    folder = tmp_path / "secrets"
    script = ROOT / "deploy/make-secrets.sh"
    for _ in range(2):
        done = subprocess.run([script, folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "authority/ca.key").stat().st_mode & 0o777 == 0o600
    made = {path.name for path in folder.iterdir() if path.is_file()}
    asked = {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}
    # the token of the monitoring is made by the service
    assert made == asked - {"metrics_token"}
    root, ours = (folder / f"object_store{p}_key" for p in ("_root", ""))
    assert root.read_text() != ours.read_text()


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
    run = [
        str(script),
        "sh",
        "-c",
        'echo "$AFTERSLIP_DATABASE ${AFTERSLIP_DATABASE_FILE-}"',
    ]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.stdout == "sqlite:///a.sqlite \n"
    missing = {**environment, "AFTERSLIP_DATABASE_FILE": str(tmp_path / "none")}
    done = subprocess.run(run, env=missing, capture_output=True, text=True)
    assert done.returncode == 1
    assert "AFTERSLIP_DATABASE_FILE" in done.stderr


CONTAINERS = [
    pytest.param(pod, container, id=container["name"])
    for pod in pods()
    for container in pod["containers"] + pod.get("initContainers", [])
]


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_every_pod_is_restricted(pod, container):
    assert pod["automountServiceAccountToken"] is False
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    own = container["securityContext"]
    assert own["readOnlyRootFilesystem"] is True
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    for kind in ("requests", "limits"):
        assert {"cpu", "memory", "ephemeral-storage"} <= set(
            container["resources"][kind]
        )


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_pods_mount_only_volumes_that_they_declare_and_scratch_has_a_size(
    pod, container
):
    declared = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == set(declared)
    assert mounts["scratch"] == "/tmp"
    for volume in declared.values():
        assert "hostPath" not in volume
        if "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"]


def secrets_of(pod):
    found = set()
    for volume in pod["volumes"]:
        for source in [volume, *volume.get("projected", {}).get("sources", [])]:
            if "secret" in source:
                secret = source["secret"]
                found.add(secret.get("secretName") or secret["name"])
    return found


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_pods_hold_only_the_secrets_that_their_environment_names(pod, container):
    maps = {m["metadata"]["name"]: m for m in manifests() if m["kind"] == "ConfigMap"}
    given = [maps[e["configMapRef"]["name"]]["data"] for e in container["envFrom"]]
    values = {v for data in given for v in data.values() if "/run/secrets/" in v}
    needed = {
        "afterslip-database" if v.endswith("database_url") else "afterslip-dask"
        for v in values
    }
    assert secrets_of(pod) == needed
    wanted = {
        "api": {"afterslip-database"},
        "dispatcher": {"afterslip-database", "afterslip-dask"},
        "scheduler": {"afterslip-dask"},
        "worker": {"afterslip-dask"},
    }
    assert secrets_of(pod) == wanted[container["name"]]


def test_guide_puts_no_folder_of_secrets_into_one_secret():
    texts = [path.read_text() for path in (ROOT / "deploy/kubernetes").glob("*.yaml")]
    texts.append((ROOT / "docs/deployment.md").read_text())
    for text in texts:
        for file in re.findall(r"--from-file=(\S+)", text):
            assert not file.endswith("/")
            assert "ca.key" not in file


def test_network_is_closed_but_for_what_is_named():
    policies = [m for m in manifests() if m["kind"] == "NetworkPolicy"]
    assert all(p["metadata"]["namespace"] == "afterslip" for p in policies)
    closed = [
        p["spec"]
        for p in policies
        if p["spec"]["podSelector"] == {} and not {"ingress", "egress"} & set(p["spec"])
    ]
    assert [set(spec["policyTypes"]) for spec in closed] == [{"Ingress", "Egress"}]
    # nobody but API and dispatcher reaches the port of the database
    for policy in policies:
        ports = [e.get("ports", []) for e in policy["spec"].get("egress", [])]
        if any(port["port"] == 5432 for group in ports for port in group):
            (chosen,) = policy["spec"]["podSelector"]["matchExpressions"]
            assert chosen["values"] == ["afterslip-api", "afterslip-dispatcher"]
    spaces = {m["metadata"].get("namespace") for m in manifests()}
    assert spaces <= {"afterslip", None}


CONFINED = (
    "CapabilityBoundingSet=",
    "NoNewPrivileges=yes",
    "UMask=0077",
    "ProtectSystem=strict",
    "SystemCallFilter=@system-service",
    "SystemCallArchitectures=native",
    "RestrictNamespaces=yes",
)
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_confined(unit):
    lines = unit.read_text().splitlines()
    for line in CONFINED:
        assert line in lines
    for setting in ("MemoryMax=", "TasksMax=", "RestrictAddressFamilies="):
        assert any(line.startswith(setting) for line in lines)
    gpu = unit.stem == "afterslip-worker"
    assert ("DevicePolicy=closed" if gpu else "PrivateDevices=yes") in lines
    needs = unit.stem in ("afterslip-api", "afterslip-dispatcher")
    assert ("EnvironmentFile=/etc/afterslip/environment" in lines) is needs


def test_cluster_environment_has_no_password():
    text = (ROOT / "deploy/systemd/cluster.example").read_text()
    assert "DATABASE" not in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_little_exposed(unit):
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", unit]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:]


LOCKS = ["requirements.lock", "deploy/docker/cpu.lock", "deploy/docker/gpu.lock"]


def locked(name):
    """Return the requirements of a lock file, each with its lines joined."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_library_has_a_version_and_checksums(name):
    for line in locked(name):
        assert re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+", line)
        assert "--hash=sha256:" in line
    assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize("name", LOCKS[1:])
def test_images_have_the_versions_that_are_tested(name):
    tested = {line.split(" --hash")[0].split(" ;")[0] for line in locked(LOCKS[0])}
    known = {item.partition("==")[0] for item in tested}
    for line in locked(name):
        item = line.split(" --hash")[0].split(" ;")[0].strip()
        if item.partition("==")[0] in known:
            assert item in {t.strip() for t in tested}


def test_images_install_nothing_without_a_checksum():
    text = (ROOT / "deploy/docker/Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip install ([^&\n]+)", text)
    assert len(installs) == 3
    for words in installs:
        assert "--require-hashes" in words or "--no-deps /wheels/" in words

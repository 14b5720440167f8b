"""Deployment files keep to the schemas of what reads them."""

import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
MANIFESTS = [
    item
    for path in sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
    for item in yaml.safe_load_all(path.read_text())
]
RELEASES = ["1.30", "1.34"]


def named(item):
    return f"{item['kind']}-{item['metadata']['name']}"


def test_compose_file_keeps_to_the_compose_specification():
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(ROOT / "docker-compose.yml")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "item", [m for m in MANIFESTS if m["kind"] != "DaskCluster"], ids=named
)
def test_manifests_keep_to_the_schemas_of_kubernetes(item, release):
    kubernetes_validate.validate(item, release, strict=True)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("part", ["scheduler", "worker"])
def test_pods_and_service_of_the_dask_cluster_are_ones_of_kubernetes(part, release):
    (cluster,) = (m for m in MANIFESTS if m["kind"] == "DaskCluster")
    kind = cluster["spec"][part]
    about = {"apiVersion": "v1", "metadata": {"name": part}}
    pod = {**about, "kind": "Pod", "spec": kind["spec"]}
    kubernetes_validate.validate(pod, release, strict=True)
    if "service" in kind:
        service = {**about, "kind": "Service", "spec": kind["service"]}
        kubernetes_validate.validate(service, release, strict=True)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_units_are_understood_by_systemd(tmp_path):
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        # its programs are looked for: ours instead of the installed ones
        text = unit.read_text().replace("/opt/afterslip/.venv/bin", str(BIN))
        text = text.replace("file:/opt/afterslip", f"file:{ROOT}")
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
    )
    warnings = [line for line in done.stderr.splitlines() if "afterslip" in line]
    assert (done.returncode, warnings) == (0, [])

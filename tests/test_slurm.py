"""What Slurm is asked for, recorded by a stand-in for its commands."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed
import pytest

from afterslip_service.settings import check_scheduler

ROOT = Path(__file__).parents[1] / "deploy/slurm"
pytest.importorskip("dask_jobqueue", reason="needs pip install 'afterslip[slurm]'")

TLS = "DASK_DISTRIBUTED__COMM__TLS"
SBATCH = """#!/bin/sh
cp "$1" "{folder}/new-$$"
mv "{folder}/new-$$" "{folder}/job-$$.sh"
echo "Submitted batch job $$"
"""
SCANCEL = '#!/bin/sh\necho "$@" >> "{folder}/cancelled"\n'


@pytest.fixture
def slurm(tmp_path):
    """Programs of Slurm that write down what they are asked."""
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        program = tmp_path / name
        program.write_text(text.replace("{folder}", str(tmp_path)))
        program.chmod(0o755)
    return tmp_path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Dask's variables for TLS, and a client that has the certificates as well."""
    folder = tmp_path_factory.mktemp("tls")
    security = distributed.Security.temporary()
    names = {"ca.pem": security.tls_ca_file}
    names |= {"all.pem": security.tls_worker_cert, "all.key": security.tls_worker_key}
    for name, content in names.items():
        (folder / name).write_text(content)
    variables = {f"{TLS}__CA_FILE": str(folder / "ca.pem")}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        variables[f"{TLS}__{role}__CERT"] = str(folder / "all.pem")
        variables[f"{TLS}__{role}__KEY"] = str(folder / "all.key")
    return variables, security


def start(slurm, *options, **variables):
    return subprocess.Popen(
        [sys.executable, ROOT / "cluster.py", "--port", "0", "--jobs", "1", *options],
        env={**os.environ, "PATH": f"{slurm}:{os.environ['PATH']}", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_job(slurm):
    deadline = time.monotonic() + 30
    while not (jobs := list(slurm.glob("job-*.sh"))):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return jobs[0]


@pytest.mark.parametrize("gpus", ["0", "1"])
def test_cluster_speaks_tls_where_certificates_are_named(slurm, certificates, gpus):
    variables, security = certificates
    cluster = start(slurm, "--gpus", gpus, **variables)
    try:
        address = cluster.stdout.readline().strip()
        assert re.fullmatch(r"tls://[\d.]+:\d+", address)
        # the rule of a dispatcher that asks for tokens
        assert check_scheduler(address, auth=True) is None
        with distributed.Client(address, security=security, timeout=20) as client:
            assert client.scheduler_info()["address"] == address
        command = first_job(slurm).read_text().splitlines()[-1]
        cluster.send_signal(signal.SIGTERM)
        assert cluster.wait(30) == 0
    finally:
        cluster.kill()
    assert f" {address} " in command
    assert "--protocol tls://" in command
    for option, name in (("ca-file", "CA_FILE"), ("cert", "WORKER__CERT")):
        assert f"--tls-{option} {variables[f'{TLS}__{name}']}" in command
    assert f"--tls-key {variables[f'{TLS}__WORKER__KEY']}" in command
    assert "PRIVATE" not in command


def test_half_a_configuration_of_tls_is_refused_by_name(slurm, certificates):
    variables = {**certificates[0]}
    del variables[f"{TLS}__WORKER__KEY"]
    cluster = start(slurm, **variables)
    _, said = cluster.communicate(timeout=30)
    assert cluster.returncode == 1
    assert said.strip() == f"TLS needs all its files: set {TLS}__WORKER__KEY"


def test_cluster_asks_for_jobs_that_run_our_workers(slurm):
    options = ["--cores", "3", "--memory", "6GB"]
    options += ["--gpus", "1", "--account", "quake", "--queue", "short"]
    cluster = start(slurm, *options)
    try:
        address = cluster.stdout.readline().strip()
        assert re.fullmatch(r"tcp://[\d.]+:\d+", address)
        job = first_job(slurm)
        cluster.send_signal(signal.SIGTERM)
        assert cluster.wait(30) == 0
    finally:
        cluster.kill()
    script = job.read_text()
    for line in ("-A quake", "-p short", "--cpus-per-task=3", "--gpus=1", "-n 1"):
        assert f"#SBATCH {line}" in script
    command = script.splitlines()[-1]
    # dask-cuda's module takes what comes first for the address
    assert f"-m dask_cuda.cli {address} " in command
    assert "--preload afterslip_workers.lifecycle" in command
    # a solve may take all that its job has: the last limit counts
    assert re.findall(r"--memory-limit (\S+)", command)[-1] == "0"
    # nothing is left in the queue
    assert (slurm / "cancelled").is_file()


def test_worker_job_hands_the_signal_to_the_command_alone():
    text = (ROOT / "workers.sbatch").read_text()
    signal = re.search(r"^#SBATCH --signal=B:TERM@(\d+)$", text, re.M)
    drain = re.search(r"--drain (\d+)", text)
    assert text.splitlines()[-2].startswith("exec ")
    # what runs ends, or leaves its checkpoint, before Slurm kills it
    assert drain is not None
    assert signal is not None
    assert float(drain[1]) <= float(signal[1]) - 60

"""What Slurm is asked for, recorded by a stand-in for its commands."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "deploy/slurm"
pytest.importorskip("dask_jobqueue", reason="needs pip install 'afterslip[slurm]'")

SBATCH = """#!/bin/sh
cp "$1" "{folder}/job-$$.sh"
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


def test_cluster_asks_for_jobs_that_run_our_workers(slurm):
    options = ["--port", "0", "--jobs", "1", "--cores", "3", "--memory", "6GB"]
    options += ["--gpus", "1", "--account", "quake", "--queue", "short"]
    cluster = subprocess.Popen(
        [sys.executable, ROOT / "cluster.py", *options],
        env={**os.environ, "PATH": f"{slurm}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = cluster.stdout.readline().strip()
        assert re.fullmatch(r"tcp://[\d.]+:\d+", address)
        deadline = time.monotonic() + 30
        while not (jobs := list(slurm.glob("job-*.sh"))):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        cluster.send_signal(signal.SIGTERM)
        assert cluster.wait(30) == 0
    finally:
        cluster.kill()
    script = jobs[0].read_text()
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
    assert float(drain[1]) <= float(signal[1]) - 60

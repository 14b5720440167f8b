"""A Dask scheduler that keeps a number of worker jobs in Slurm.

    python deploy/slurm/cluster.py --port 8786 --jobs 8 --gpus 1 --account ACCOUNT

Runs until it is stopped, on a login or service node; dispatchers reach it as
AFTERSLIP_SCHEDULER. Speaks TLS if the environment names certificates, by
DASK_DISTRIBUTED__COMM__TLS__… (docs/deployment.md); the jobs must be able to read them
at the same paths. Needs `pip install 'afterslip[slurm]'`.
"""

import argparse
import signal

import dask
from dask_jobqueue import SLURMCluster
from distributed import Security

PRELOAD = "afterslip_workers.lifecycle"
STOPS = (signal.SIGTERM, signal.SIGINT)
TLS = "distributed.comm.tls"
# the cluster is a client of its own scheduler
ROLES = ("client", "scheduler", "worker")
FILES = ("ca-file", *(f"{role}.{name}" for role in ROLES for name in ("cert", "key")))


def tls() -> Security | None:
    """Return the certificates that Dask's configuration names; None: it names none.

    Raises
    ------
    SystemExit
        Only some of them are named: a connection would fail much later.
    """
    named = {name: dask.config.get(f"{TLS}.{name}", None) for name in FILES}
    missing = [name for name, path in named.items() if not path]
    if len(missing) == len(FILES):
        return None
    if missing:
        variables = (
            "DASK_" + f"{TLS}.{name}".upper().replace(".", "__").replace("-", "_")
            for name in missing
        )
        raise SystemExit(f"TLS needs all its files: set {', '.join(variables)}")
    return Security(require_encryption=True)


def main() -> None:
    """Start the cluster, print its address and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8786)
    parser.add_argument("--jobs", type=int, default=4, help="jobs to keep")
    parser.add_argument("--cores", type=int, default=4, help="of a job")
    parser.add_argument("--memory", default="32GB", help="of a job")
    parser.add_argument("--gpus", type=int, default=0, help="of a job")
    parser.add_argument("--account")
    parser.add_argument("--queue")
    parser.add_argument("--walltime", default="12:00:00")
    parser.add_argument("--interface", help="network interface of the scheduler")
    options = parser.parse_args()
    # before any thread starts: one that took the signal would not wake the main one
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    # the database counts attempts; Dask must not start a task again by itself
    # and its pages know no users
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.scheduler.http.routes": [],
        }
    )
    security = tls()
    module = "dask_cuda.cli" if options.gpus else "distributed.cli.dask_worker"
    cluster = SLURMCluster(
        cores=1,
        processes=1,
        job_cpu=options.cores,
        memory=options.memory,
        account=options.account,
        queue=options.queue,
        walltime=options.walltime,
        interface=options.interface,
        protocol=None if security is None else "tls://",
        security=security,
        worker_command=module,
        # the last word counts: a solve may take all the memory that its job has
        worker_extra_args=["--preload", PRELOAD, "--memory-limit", "0"]
        + ([] if options.gpus else ["--no-dashboard"]),
        job_extra_directives=[f"--gpus={options.gpus}"] if options.gpus else [],
        scheduler_options={"port": options.port, "dashboard": False},
    )
    # a job that ends is asked for again. Dask cannot see how much work there is: the
    # dispatcher hands out no more than there are workers
    cluster.adapt(minimum_jobs=options.jobs, maximum_jobs=options.jobs)
    print(cluster.scheduler_address, flush=True)
    signal.sigwait(STOPS)
    cluster.close()


if __name__ == "__main__":
    main()

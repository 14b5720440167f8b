"""What `mutants.py` changes, and which fast tests look at it."""

from __future__ import annotations

# folder → where it lies, the tests of all its modules, and more of some modules
FOLDERS: dict[str, tuple[str, list[str], dict[str, list[str]]]] = {
    "db": (
        "service/afterslip_service/db",
        ["service/test_database.py"],
        {
            "attempts": ["service/test_dispatch.py"],
            "bulk": [
                "service/test_claim_races.py",
                "service/test_fsck_unverified.py",
                "service/test_stateful.py",
            ],
            "campaigns": ["service/test_dispatch.py", "service/test_job_moves.py"],
            "claims": ["service/test_claim_races.py", "service/test_fairness.py"],
            "idempotency": ["service/test_http.py"],
            "inversions": ["service/test_dispatch.py"],
            "jobs": [
                "service/test_claim_races.py",
                "service/test_dispatch.py",
                "service/test_job_moves.py",
            ],
            "leases": ["service/test_fencing.py"],
            "measured": ["service/test_measured.py"],
            "queue": ["service/test_fairness.py"],
            "queue_position": ["service/test_fairness.py"],
            "scrubbing": ["service/test_scrubber.py"],
            "sources": ["service/test_reuse.py"],
            "tokens": ["service/test_access.py"],
            "twins": ["service/test_reuse.py"],
            "usage": ["service/test_usage.py"],
            "webhooks": ["service/test_webhooks.py"],
        },
    ),
    "engine": (
        "service/afterslip_service/engine",
        ["service/test_engine.py"],
        {
            "buckets": ["service/test_rate_limits.py"],
            "explain": ["service/test_explain.py"],
            "retry": ["service/test_retry.py"],
            "webhooks": [
                "service/test_webhook_addresses.py",
                "service/test_webhooks.py",
            ],
        },
    ),
    "store": (
        "workers/afterslip_workers/store",
        ["workers/test_commit.py"],
        {
            "backend": ["workers/test_store_backends.py"],
            "bucket": ["workers/test_store_backends.py", "workers/test_bucket.py"],
            "check": ["service/test_fsck.py"],
            "checkpoint": ["workers/test_checkpoint.py"],
            "commit": ["workers/test_fenced_promotion.py"],
            "findings": ["service/test_fsck.py"],
            "local": ["workers/test_store_backends.py"],
            "models": ["workers/test_model_file.py", "workers/test_damaged_model.py"],
            "order": ["workers/test_order.py", "service/test_fsck.py"],
            "progress": ["workers/test_progress.py"],
            "reading": ["workers/test_reading.py", "workers/test_retract.py"],
            "repair": ["service/test_fsck.py"],
            "retract": [
                "workers/test_retract.py",
                "workers/test_scrub.py",
                "service/test_fsck_unverified.py",
            ],
            "scrub": ["workers/test_scrub.py"],
            "seal": ["workers/test_seal.py"],
            "spool": ["workers/test_spool.py"],
            "uploads": ["workers/test_uploads.py"],
        },
    ),
    "inversion": (
        "solver/afterslip_solver/inversion",
        ["solver/test_inversion.py"],
        {
            "bayes_factor": ["solver/test_inversion_bayes_factor.py"],
            "convex": [
                "solver/test_inversion_constraints.py",
                "solver/test_inversion_convex.py",
            ],
            "covariance": ["solver/test_inversion_covariance.py"],
            "hierarchy": ["solver/test_inversion_posterior.py"],
            "in_time": ["solver/test_in_time.py"],
            "model_error": ["solver/test_inversion_model_error.py"],
            "nuisance": ["solver/test_inversion_nuisance.py"],
            "posterior": ["solver/test_inversion_posterior.py"],
            "regularisers": ["solver/test_regularisers.py"],
            "restoration": ["solver/test_inversion_restoration.py"],
            "robust": ["solver/test_inversion_robust.py"],
            "truncated": ["solver/test_inversion_posterior.py"],
        },
    ),
}
# minutes long
SLOW = "test_intervals_cover_slip or test_evidence or cluster"

"""What ``import afterslip`` offers, and what it costs."""

import subprocess
import sys

import afterslip

HEAVY = {"numpy", "xarray", "httpx", "pydantic", "matplotlib", "typer", "yaml"}


def test_the_face_is_exactly_this():
    assert afterslip.__all__ == [
        "AfterslipError",
        "ApiError",
        "Campaign",
        "CampaignError",
        "Client",
        "NoServerError",
        "SpecError",
        "__version__",
        "open_greens",
        "open_result",
        "write_report",
    ]
    assert dir(afterslip) == sorted(afterslip.__all__)


def test_every_name_of_the_face_is_there():
    for name in afterslip.__all__:
        assert getattr(afterslip, name) is not None


def test_every_error_of_the_face_is_one_tree():
    for name in ("ApiError", "CampaignError", "NoServerError", "SpecError"):
        assert issubclass(getattr(afterslip, name), afterslip.AfterslipError)


def test_importing_it_imports_nothing_heavy():
    code = "import afterslip, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())

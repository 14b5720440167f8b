"""What ``import afterslip`` offers, and what it costs."""

import importlib.util
import subprocess
import sys

import pytest

import afterslip

HEAVY = {"numpy", "xarray", "httpx", "pydantic", "matplotlib", "typer", "yaml"}


def test_the_face_is_exactly_this():
    assert afterslip.__all__ == [
        "AfterslipError",
        "ApiError",
        "AsyncClient",
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
    bare = importlib.util.find_spec("jinja2") is None
    for name in set(afterslip.__all__) - ({"write_report"} if bare else set()):
        assert getattr(afterslip, name) is not None


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("matplotlib", "drawing figures needs matplotlib, which is not installed here"),
        ("jinja2", "pip install 'afterslip[plot]'"),
    ],
)
def test_a_missing_library_is_named_with_the_extra_that_brings_it(module, hint):
    code = (
        f"import sys, importlib.util as u; real = u.find_spec; "
        f"u.find_spec = lambda name, *r: None if name == {module!r} else real(name, *r)"
        "; import afterslip.plot, afterslip.report"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert hint in done.stderr


def test_every_error_of_the_face_is_one_tree():
    for name in ("ApiError", "CampaignError", "NoServerError", "SpecError"):
        assert issubclass(getattr(afterslip, name), afterslip.AfterslipError)


def test_importing_it_imports_nothing_heavy():
    code = "import afterslip, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())

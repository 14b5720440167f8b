"""What the page of elastic waves says to type, one command after the other."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/waves.md").read_text()
TOOLS = str(Path(sys.executable).parent)
# ObsPy comes by the extra that the page installs, in an environment of its own
OBSPY = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--isolated",
         "--python", sys.executable, "--with", f"{ROOT}[seismology]", "--"]  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def lines(beginning):
    """Return the commands of the page that begin so."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    every = [line for block in blocks for line in block.strip().split("\n")]
    found = [line for line in every if line.startswith(beginning)]
    assert found, beginning
    return found


def typed(folder, *beginnings, by=()):
    """Run those commands of the page in a folder; return what they print."""
    said = ""
    environment = {
        **os.environ,
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        "UV_CONSTRAINT": str(ROOT / "requirements.lock"),
    }
    for line in (line for beginning in beginnings for line in lines(beginning)):
        done = subprocess.run(
            [*by, "bash", "-ec", line], cwd=folder, env=environment, timeout=600,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said += done.stdout
    return said


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_the_example_is_run_drawn_and_exported(folder):
    by = [*OBSPY, "python", "-c", "import obspy"]
    if subprocess.run(by, check=False, timeout=500, cwd="/").returncode:
        pytest.skip("obspy cannot be installed here")
    said = typed(folder, "afterslip run examples/waves", "python examples/waves")
    assert "of the largest offset" in said
    spec = re.search(r'^```yaml title="earthquake.yaml"\n(.*?)^```$', PAGE, re.M | re.S)
    assert spec
    (folder / "earthquake.yaml").write_text(spec[1])
    typed(folder, "afterslip forward earthquake.yaml")
    typed(folder, "afterslip export", by=OBSPY)
    for name in (
        "source3/velocity.mseed",
        "source3/stations.xml",
        "series/stations.xml",
    ):
        assert (folder / name).stat().st_size > 1000
    # the series that were exported come back as a table
    shutil.copy(folder / "series/velocity.mseed", folder)
    with xr.open_dataset(folder / "motion.nc") as motion:
        motion.load()
    # points that have no name
    names = [f"S{1 + row:04d}" for row in range(motion.sizes["point"])]
    places = zip(names, motion["lon"].values, motion["lat"].values, strict=True)
    rows = [f"{name},{lon},{lat}" for name, lon, lat in places]
    (folder / "stations.csv").write_text("\n".join(["station,lon,lat", *rows]))
    typed(folder, "afterslip motion *.mseed", by=OBSPY)
    with (folder / "motion.csv").open() as file:
        table = list(csv.DictReader(file))
    found = [[float(row[c]) for c in ("east", "north", "up")] for row in table]
    series = motion["velocity"].transpose("point", "time", "component").values
    assert [row["station"] for row in table] == np.repeat(
        names, series.shape[1]
    ).tolist()
    np.testing.assert_allclose(found, series.reshape(-1, 3), rtol=1e-5, atol=1e-7)


def test_the_rupture_is_found_and_compared(folder):
    said = typed(folder, "afterslip run examples/kin", "python examples/kinematic")
    assert "of the truth" in said


def test_the_checks_and_the_benchmark_run(folder):
    said = typed(folder, "afterslip verify waves", "afterslip bench waves")
    assert re.search(r"(\d+) of \1 checks passed", said)
    assert "voxel_step_fp64" in said

"""A reader that is added as the page says feeds offsets and observations."""

import re
from pathlib import Path

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.observations import read_observations
from afterslip.readers.series import coseismic_offset, write_offsets

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-reader.md"
DAYS = [f"2011-03-{day:02d}" for day in range(6, 17)]
TEXT = "".join(
    f"{day} {1.0 if day > '2011-03-11' else 0.0} 0.2 -0.1 0.002\n" for day in DAYS
)


@pytest.fixture
def read():
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 60
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(snippet, str(PAGE), "exec"), names)
    return names["read_enu"]


def test_series_of_the_pages_reader_becomes_observations(read, tmp_path):
    series = read(TEXT.encode(), "J550", 141.5, 38.3)
    offset = coseismic_offset(series, "2011-03-11T05:46:18", "5 d", "5 d")
    np.testing.assert_allclose(offset["offset"], [1.0, 0.0, 0.0], atol=1e-12)
    path = write_offsets([offset], tmp_path / "offsets.csv")
    found = read_observations(path.read_bytes(), Frame("geographic", 142.4, 38.3))
    np.testing.assert_allclose(found.displacement, [[1.0, 0.0, 0.0]], atol=1e-9)


@pytest.mark.parametrize("line", ["2011-13-40 0 0 0 1", "2011-03-07 nan 0 0 1", "x"])
def test_wrong_line_is_named(read, line):
    with pytest.raises(SpecError, match=r"series\.enu line 2"):
        read(f"{DAYS[0]} 0 0 0 0.1\n{line}\n".encode(), "J550", 141.5, 38.3)

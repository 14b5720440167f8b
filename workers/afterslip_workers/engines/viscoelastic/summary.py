"""What a forward run found, in lines for a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


def summary(result: xr.Dataset, seconds: float) -> list[str]:
    """Say in lines what a run found, and how."""
    attrs, quality = result.attrs, json.loads(result.attrs["quality"])
    size = np.linalg.norm(result["displacement"].values, axis=2)
    notes = json.loads(attrs["notes"])
    return [
        f"{attrs['title']}: {attrs['n_unknowns']:,} unknowns, {attrs['solves']} solves "
        f"of {attrs['iterations']} iterations in all, residual "
        f"{attrs['residual']:.1e}, {seconds:.1f} s",
        f"slip: moment {attrs['moment']:.3g} N m, Mw {attrs['magnitude']:.2f}, largest "
        f"{attrs['peak_slip']:.3g} m",
        f"aspect ratio of elements {quality['aspect_median']:.1f} median, "
        f"{quality['aspect_max']:.1f} at most; error of the curve in time "
        f"{attrs['time_error']:.1e}",
        *(note if note.startswith("warning") else f"note: {note}" for note in notes),
        *(
            f"  {when:8.3f} yr: largest displacement {sizes.max():.4g} m{error}"
            for when, sizes, error in zip(
                result["time"].values, size, _errors(result), strict=True
            )
        ),
    ]


def _errors(result: xr.Dataset) -> list[str]:
    """Say at each time what the mesh's error is estimated to be."""
    if "space_error" not in result:
        return [""] * result.sizes["time"]
    elastic, change = result["space_error"].max("point").values
    return [
        f", error of the mesh up to {first:.2g} m (elastic), {second:.2g} m (change)"
        for first, second in zip(elastic, change, strict=True)
    ]

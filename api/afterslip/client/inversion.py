"""An inversion on a server, and its result."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afterslip.client.errors import CampaignError
from afterslip.client.handle import Handle
from afterslip.client.transport import Transport
from afterslip.units import largest_slip

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

ENDED = frozenset({"accepted", "failed", "cancelled"})


class Inversion(Handle):
    """Slip estimated from data.

    The numbers of the result are fetched when first asked for.

    Attributes
    ----------
    data : the inversion as the server last described it.
    state : waiting, queued, running, stored, accepted, failed or cancelled.
    """

    _KIND = "Inversion"
    _FOLDER = "/v1/inversions"

    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
        super().__init__(transport, data)
        self._result: xr.Dataset | None = None
        self._bytes: bytes | None = None

    def _facts(self) -> list[tuple[str, str]]:
        facts = super()._facts()
        summary = self.data.get("summary") or {}
        for name, key, form in (
            ("Mw", "magnitude", "{:.2f}"),
            ("largest slip", "peak_slip", ""),
            ("variance reduction", "variance_reduction", "{:.1%}"),
            ("score", "score", "{:.2f}"),
            ("smoothness", "smoothness", "{:.3g}"),
        ):
            if summary.get(key) is None:
                continue
            if key == "peak_slip":  # of which the average about it has limits
                value = largest_slip(summary, ".2f")
            else:
                value = form.format(summary[key])
                if (ends := self._interval(f"{key}_interval")) is not None:
                    value += f" ({form.format(ends[0])} to {form.format(ends[1])})"
            facts.append((name, value))
        return facts + [("to doubt", text) for text in self.warnings]

    def wait(self, *, timeout: float | None = None) -> Inversion:
        """Wait for the result; returns itself.

        Raises
        ------
        CampaignError
            when it fails or is cancelled.
        TimeoutError
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self.state not in ENDED:
            self._poll(self._ended, deadline)
        if self.state != "accepted":
            raise CampaignError(
                f"inversion {self.name}", self.state, self.data.get("error")
            )
        return self

    def _ended(self) -> bool:
        return self.refresh().state in ENDED

    def result_bytes(self) -> bytes:
        """Return ``result.nc`` as the server holds it."""
        if self._bytes is None:
            self._bytes = self._transport.read(f"{self._path}/result")
        return self._bytes

    @property
    def result(self) -> xr.Dataset:
        """Everything: slip, fit, series, score, as ``docs/files.md`` lays it out."""
        if self._result is None:
            from afterslip.result import open_result

            self._result = open_result(io.BytesIO(self.result_bytes()))
        return self._result

    @property
    def slip(self) -> xr.DataArray:
        """Coefficients of the unit sources (source), m, with their places."""
        result = self.result
        places = {
            "fault": result["source_fault"],
            "slip_component": result["source_component"],
        }
        for i, name in enumerate(("along", "down")):
            places[name] = result["source_patch"][:, i]
        for i, name in enumerate("xyz"):
            places[name] = result["source_position"][:, i]
        return result["slip"].assign_coords(places)

    @property
    def fault_slip(self) -> xr.DataArray:
        """Slip at the fault's nodes (fault_node, slip_component), m."""
        result = self.result
        names = [f"fault_{n}" for n in ("x", "y", "z", "lon", "lat", "along", "down")]
        return result["fault_slip"].assign_coords(
            {name: result[name] for name in names if name in result}
        )

    @property
    def predicted(self) -> xr.DataArray:
        """Predicted data (obs), m, with station, component and observed value."""
        result = self.result
        names = ["observed", "sigma", "obs_station", "obs_component", "obs_type"]
        return result["predicted"].assign_coords({n: result[n] for n in names})

    @property
    def moment(self) -> float:
        """Scalar moment, N m, summed over the patches."""
        return self._number("moment")

    @property
    def magnitude(self) -> float:
        """Moment magnitude Mw."""
        return self._number("magnitude")

    @property
    def peak_slip(self) -> float:
        """Largest slip, m."""
        return self._number("peak_slip")

    @property
    def magnitude_interval(self) -> tuple[float, float] | None:
        """Limits of Mw that hold 95 % of the draws; None where none were made."""
        return self._interval("magnitude_interval")

    @property
    def peak_slip_interval(self) -> tuple[float, float] | None:
        """Limits of 95 % of `peak_slip_average` in the result, m, or None."""
        return self._interval("peak_slip_interval")

    @property
    def variance_reduction(self) -> float:
        """1 - Σ(residual/sigma)² / Σ(observed/sigma)²."""
        return self._number("variance_reduction")

    @property
    def score(self) -> float:
        """Mean squared held-out residual over sigma; nan without cross-validation."""
        return self._number("score")

    @property
    def warnings(self) -> list[str]:
        """What to doubt, as the result says it."""
        return [
            str(text) for text in (self.data.get("summary") or {}).get("warnings", [])
        ]

    def _interval(self, name: str) -> tuple[float, float] | None:
        value = (self.data.get("summary") or {}).get(name)
        return None if value is None else (float(value[0]), float(value[1]))

    def _number(self, name: str) -> float:
        summary = self.data.get("summary") or {}
        value = summary.get(name)
        if value is None:
            value = self.result.attrs.get(name)
        return float("nan") if value is None else float(value)

    def plot_slip(self, path: str | Path | None = None) -> Figure:
        """Draw the slip map; also written where a path is given."""
        from afterslip.plot import save, slip_map

        figure = slip_map(self.result)
        if path is not None:
            save(figure, path)
        return figure

    def save(self, directory: str | Path) -> Path:
        """Copy result, report, tables and figures from the server.

        Parameters
        ----------
        directory : made if it is not there; what it holds of the same name is replaced.

        Returns
        -------
        The folder: ``result.nc``, ``report.html``, ``slip.csv``, ``slip.geojson``,
        ``data_fit.csv``, PNG.
        """
        from afterslip.client.download import copy_inversion

        return copy_inversion(self._transport, self, Path(directory))

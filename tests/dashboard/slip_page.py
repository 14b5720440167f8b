"""A small campaign with inversions, for tests of what the page shows of their slip."""

from __future__ import annotations

import numpy as np
from test_page import count

DATA = """station,x_km,y_km,east,north,up
A,-20,-30,0.02,0.01,0.01
B,30,10,-0.08,0.04,0.20
C,5,40,-0.03,0.05,-0.02
D,-40,20,0.03,-0.01,0.00
E,20,-25,-0.05,0.02,0.12
F,45,30,-0.04,0.02,-0.05
"""
SPEC = """
name: small thrust
model:
  domain: {x: [-150, 150], y: [-150, 150], depth: 120}
  layers: [{name: rock, bottom: 120, vp: 6.0, vs: 3.5, rho: 2700}]
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 3, strike: 20, dip: 30, length: 50, width: 30}
  mesh: {size: {fault: 15, far: 60}}
sources: {fault: main, along_strike: 2, down_dip: 1}
times: {until: 1 yr, output: [0 d, 1 yr]}
datasets: [{name: gnss, file: data.csv, sigma: {horizontal: 0.003, vertical: 0.01}}]
inversions:
  - {name: smooth, datasets: [gnss], smoothness: 1.0}
  - {name: tried, datasets: [gnss]}
  - {name: rough, datasets: [gnss], smoothness: 0.01}
"""
DRAWN = f"{count('.panels .shade')} > 3"


def numbers(shown):
    """(datum, 4) observed, predicted, residual, sigma in m."""
    found = shown.until(
        "(() => { const v = [...document.querySelectorAll('td[data-value]')]"
        ".map((cell) => Number(cell.dataset.value)); return v.length ? v : null; })()"
    )
    return np.array(found).reshape(-1, 4)

"""The only file that talks to gmsh: shapes in, vertices and cells out."""

from __future__ import annotations

import ctypes
import importlib
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_int, c_void_p
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.geometry import Box
from afterslip_solver.mesh.geometry import MeshSize
from afterslip_solver.model import Float, Int

# loaded by the first session: it draws in graphics libraries, which a process that
# only solves on a finished model does not need and a GPU node may lack
gmsh: Any = None
# gmsh keeps one global state per process
_ONE_AT_A_TIME = threading.Lock()
# OCC's tolerances are absolute (1e-7), so the domain is scaled to this size
_EXTENT = 1000.0
# heights of a scaled domain that differ by less are the same
_LITTLE = 1e-3
# edges at the ends of faults lengthen by this share of the depth below the ground
_DEEPER = 0.5
# twice as fast as Delaunay here, and better around acute wedges
_HXT = 10

Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RawMesh:
    """Vertices, tetrahedra and the triangles of named surfaces.

    Attributes
    ----------
    vertices : (n_vertex, 3) float64, m.
    cells : (n_elem, 4) int64.
    surfaces : by name (n_tri, 3) int64 vertex numbers.
    """

    vertices: Float
    cells: Int
    surfaces: dict[str, Int]


@contextmanager
def quiet_gmsh() -> Iterator[None]:
    """One silent, deterministic gmsh session, always closed again.

    It may run in a thread or a child process, and leaves signals as they are.
    """
    global gmsh
    with _ONE_AT_A_TIME:
        gmsh = importlib.import_module("gmsh")
        # it lets SIGPIPE end the process, at once and without a word, as soon as
        # anybody hangs up; Python's signal.signal is for the main thread only
        answer_with = ctypes.CDLL(None).signal
        answer_with.argtypes, answer_with.restype = (c_int, c_void_p), c_void_p
        before = answer_with(signal.SIGPIPE, signal.SIG_IGN)
        try:
            gmsh.initialize(readConfigFiles=False, interruptible=False)
        finally:
            answer_with(signal.SIGPIPE, before)
        try:
            for option, value in (
                ("General.Terminal", 0),
                ("General.NumThreads", 1),
                ("Mesh.RandomSeed", 1),
                ("Mesh.MeshSizeFromPoints", 0),
                ("Mesh.MeshSizeFromCurvature", 0),
                ("Mesh.MeshSizeExtendFromBoundary", 0),
                ("Mesh.Optimize", 1),
                ("Mesh.OptimizeNetgen", 0),
            ):
                gmsh.option.setNumber(option, value)
            gmsh.model.add("afterslip")
            yield
        finally:
            gmsh.finalize()


@dataclass(slots=True)
class Mesher:
    """Collects shapes in metres and meshes the box around them.

    Use inside ``quiet_gmsh``. Surfaces are added by name, then ``mesh`` is called
    once.

    Attributes
    ----------
    tops : of surfaces whose slip takes shorter edges where it ends at or near the
        ground: the depth at which it begins, m.
    """

    box: Box
    size: MeshSize
    surfaces: dict[str, list[int]] = field(default_factory=dict)
    planes: list[int] = field(default_factory=list)
    tops: dict[str, float] = field(default_factory=dict)
    scale: float = 1.0

    def __post_init__(self) -> None:
        spans = (self.box.x[1] - self.box.x[0], self.box.y[1] - self.box.y[0])
        self.scale = _EXTENT / max(*spans, self.box.depth)

    def add_grid(self, name: str, points: Float) -> None:
        """Flat surface made of (n-1) x (m-1) quadrilaterals.

        Parameters
        ----------
        points : (n, m, 3) float64, m, corners in one plane.
        """
        occ = gmsh.model.occ
        n, m = points.shape[:2]
        scaled = points * self.scale
        tag = [[occ.addPoint(*scaled[i, j]) for j in range(m)] for i in range(n)]
        first = [
            [occ.addLine(tag[i][j], tag[i + 1][j]) for j in range(m)]
            for i in range(n - 1)
        ]
        second = [
            [occ.addLine(tag[i][j], tag[i][j + 1]) for j in range(m - 1)]
            for i in range(n)
        ]
        self.surfaces[name] = [
            occ.addPlaneSurface(
                [
                    occ.addCurveLoop(
                        [first[i][j], second[i + 1][j], first[i][j + 1], second[i][j]]
                    )
                ]
            )
            for i in range(n - 1)
            for j in range(m - 1)
        ]

    def add_spline(self, name: str, poles: Float, knots: tuple[Float, Float]) -> None:
        """Bicubic B-spline surface, or one more part of it.

        Parameters
        ----------
        poles : (n, m, 3) float64, m.
        knots : clamped knot vectors of n + 4 and m + 4 values.
        """
        occ = gmsh.model.occ
        # gmsh runs through the first parameter fastest
        flat = (poles * self.scale).transpose(1, 0, 2).reshape(-1, 3)
        tags = [occ.addPoint(*point) for point in flat]
        unique = [np.unique(k, return_counts=True) for k in knots]
        surface = occ.addBSplineSurface(
            tags,
            len(poles),
            degreeU=3,
            degreeV=3,
            knotsU=unique[0][0].tolist(),
            knotsV=unique[1][0].tolist(),
            multiplicitiesU=unique[0][1].tolist(),
            multiplicitiesV=unique[1][1].tolist(),
        )
        self.surfaces.setdefault(name, []).append(surface)
        occ.synchronize()
        occ.remove([(0, tag) for tag in tags])

    def add_horizon(self, depth: float) -> None:
        """Horizontal plane through the whole domain at a depth in m."""
        box, k = self.box, self.scale
        self.planes.append(
            gmsh.model.occ.addRectangle(
                box.x[0] * k,
                box.y[0] * k,
                -depth * k,
                (box.x[1] - box.x[0]) * k,
                (box.y[1] - box.y[0]) * k,
            )
        )

    def distance(self, first: str, second: str) -> float:
        """Smallest distance of two surfaces, m."""
        return float(
            min(
                gmsh.model.occ.getDistance(2, a, 2, b)[0]
                for a in self.surfaces[first]
                for b in self.surfaces[second]
            )
            / self.scale
        )

    def mesh(self, layers: Sequence[tuple[float, float, float]] = ()) -> RawMesh:
        """Fragment, size and mesh.

        Parameters
        ----------
        layers : (top, bottom, largest size) in m of layers that need smaller
            elements than those far from the faults.
        """
        try:
            pieces = self._fragment()
            self._set_sizes(pieces, layers)
            gmsh.model.mesh.generate(3)
        except MeshError:
            raise
        except Exception as error:
            raise MeshError(
                f"gmsh could not mesh the domain ({_last_word(error)}); try another "
                "mesh.size.fault, a larger domain, or move edges of faults that "
                "nearly touch each other, a layer's bottom or the domain's sides"
            ) from error
        return self._extract(pieces)

    def _fragment(self) -> dict[str, list[int]]:
        """Cut everything by everything; drop what lies outside the box."""
        occ, box, k = gmsh.model.occ, self.box, self.scale
        volume = occ.addBox(
            box.x[0] * k,
            box.y[0] * k,
            -box.depth * k,
            (box.x[1] - box.x[0]) * k,
            (box.y[1] - box.y[0]) * k,
            box.depth * k,
        )
        tools: list[Shape] = [(2, t) for tags in self.surfaces.values() for t in tags]
        tools += [(2, tag) for tag in self.planes]
        if not tools:
            occ.synchronize()
            return {}
        _, children = occ.fragment([(3, volume)], tools)
        occ.synchronize()
        of_tool = dict(zip(tools, children[1:], strict=True))
        pieces: dict[str, list[int]] = {}
        for name, tags in self.surfaces.items():
            found = [tag for t in tags for _, tag in of_tool[2, t]]
            # bounding boxes of trimmed splines are those of the untrimmed ones
            height = {t: occ.getCenterOfMass(2, t)[2] for t in found}
            above = [t for t in found if height[t] > 0.0]
            if above:
                occ.remove([(2, t) for t in above], recursive=True)
            pieces[name] = [t for t in found if height[t] <= 0.0]
        occ.synchronize()
        return pieces

    def _set_sizes(
        self,
        pieces: dict[str, list[int]],
        layers: Sequence[tuple[float, float, float]],
    ) -> None:
        """Size grows linearly with the distance from the faults, up to a cap."""
        fields = gmsh.model.mesh.field
        k, size = self.scale, self.size
        used = []
        for name, tags in pieces.items():
            used.append(self._growing(tags))
            if name in self.tops:
                used.append(self._finer(self.tops[name] * k, tags))
        for top, bottom, largest in layers:
            layer = fields.add("Box")
            for key, value in (
                ("VIn", largest * k),
                ("VOut", size.far * k),
                ("XMin", self.box.x[0] * k),
                ("XMax", self.box.x[1] * k),
                ("YMin", self.box.y[0] * k),
                ("YMax", self.box.y[1] * k),
                ("ZMin", -bottom * k),
                ("ZMax", -top * k),
                ("Thickness", 2.0 * largest * k),
            ):
                fields.setNumber(layer, key, value)
            used.append(layer)
        smallest = fields.add("Min")
        fields.setNumbers(smallest, "FieldsList", used)
        fields.setAsBackgroundMesh(smallest)
        gmsh.option.setNumber("Mesh.MeshSizeMax", size.far * k)
        gmsh.option.setNumber("Mesh.Algorithm3D", _HXT)

    def _growing(self, tags: list[int]) -> int:
        """Return a field that grows with the distance from a fault's pieces."""
        fields = gmsh.model.mesh.field
        k, size = self.scale, self.size
        distance = fields.add("Distance")
        fields.setNumbers(distance, "SurfacesList", tags)
        fields.setNumber(distance, "Sampling", self._sampling(tags))
        grow = int(fields.add("Threshold"))
        reach = size.fault + (size.far - size.fault) / size.growth
        for key, value in (
            ("InField", distance),
            ("SizeMin", size.fault * k),
            ("SizeMax", size.far * k),
            ("DistMin", size.fault * k),
            ("DistMax", reach * k),
        ):
            fields.setNumber(grow, key, value)
        return grow

    def _finer(self, top: float, tags: list[int]) -> int:
        """Return a field that is small where slip ends at the ground or at its top."""
        fields, size = gmsh.model.mesh.field, self.size
        deeper = 0.0 if top > 0.0 else _DEEPER
        near = fields.add("Distance")
        curves = _upper_edge(tags, -top) if top > 0.0 else _ends_at_ground(tags)
        fields.setNumbers(near, "CurvesList", curves)
        fields.setNumber(near, "Sampling", self._sampling(tags))
        finer, least = int(fields.add("MathEval")), size.ends * size.fault * self.scale
        grown = f"{least!r} + {size.growth!r}*F{near} - {deeper}*z"
        fields.setString(finer, "F", grown)
        return finer

    def _sampling(self, tags: list[int]) -> int:
        """Points along each side of a piece, at most a third of a size apart."""
        widest = 0.0
        for tag in tags:
            low = np.array(gmsh.model.getBoundingBox(2, tag))
            widest = max(widest, float(np.linalg.norm(low[3:] - low[:3])))
        wanted = 3.0 * widest / (self.size.fault * self.scale)
        return int(np.clip(np.ceil(wanted), 4, 400))

    def _extract(self, pieces: dict[str, list[int]]) -> RawMesh:
        tags, coordinates, _ = gmsh.model.mesh.getNodes()
        place = np.full(int(tags.max()) + 1, -1, dtype=np.int64)
        place[tags.astype(np.int64)] = np.arange(len(tags))
        _, cells = gmsh.model.mesh.getElementsByType(4)
        cells = place[cells.astype(np.int64).reshape(-1, 4)]
        surfaces = {
            name: np.concatenate(
                [
                    place[
                        gmsh.model.mesh.getElementsByType(2, tag)[1]
                        .astype(np.int64)
                        .reshape(-1, 3)
                    ]
                    for tag in found
                ]
            )
            for name, found in pieces.items()
        }
        vertices = np.asarray(coordinates, dtype=np.float64).reshape(-1, 3) / self.scale
        return RawMesh(_on_walls(vertices, self.box), cells, surfaces)


def _ends_at_ground(tags: list[int]) -> list[int]:
    """Return the curves that go down from the ground at the ends of a fault.

    Where a fault consists of pieces that are cut where slip ends, these are the cuts.
    """
    reaching = {
        curve: n
        for curve, (low, high, n) in _sides(tags).items()
        if high > -_LITTLE and low < -_LITTLE
    }
    between = [curve for curve, n in reaching.items() if n > 1]
    return between or list(reaching)


def _upper_edge(tags: list[int], z: float) -> list[int]:
    """Return the level curves of a fault that are nearest to a height."""
    level = {
        curve: abs(high - z)
        for curve, (low, high, _) in _sides(tags).items()
        if high - low < _LITTLE
    }
    nearest = min(level.values(), default=0.0)
    return [curve for curve, off in level.items() if off < nearest + _LITTLE]


def _sides(tags: list[int]) -> dict[int, tuple[float, float, int]]:
    """Return the lowest and highest z of curves around pieces, and of how many."""
    count = Counter(
        abs(curve)
        for tag in tags
        for _, curve in gmsh.model.getBoundary([(2, tag)], oriented=False)
    )
    boxes = {curve: gmsh.model.getBoundingBox(1, curve) for curve in count}
    return {curve: (boxes[curve][2], boxes[curve][5], count[curve]) for curve in count}


def _on_walls(vertices: Float, box: Box) -> Float:
    """Vertices within rounding of a wall of the box are put on it exactly."""
    tolerance = 1e-9 * max(box.x[1] - box.x[0], box.y[1] - box.y[0], box.depth)
    for axis, walls in enumerate((box.x, box.y, (-box.depth, 0.0))):
        for wall in walls:
            near = np.abs(vertices[:, axis] - wall) < tolerance
            vertices[near, axis] = wall
    return vertices


def _last_word(error: Exception) -> str:
    """Say on one line what gmsh said last."""
    text = str(error) or gmsh.logger.getLastError()
    return " ".join(str(text).split()) or "no reason given"

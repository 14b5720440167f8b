// @ts-check
/** The coast in km about the origin of a frame: Natural Earth 1:50m, public domain. */

const FILE = "/dashboard/vendor/land-50m.json";
// WGS 84
const A = 6378.137, E2 = 0.00669437999;
const RAD = Math.PI / 180;
// km; a map shows no more
const FAR = 3000;

/** @typedef {{lines: number[][][], boxes: number[][]}} Coast lines (line, point, 2) km; west, south, east, north of each */

/** @type {Promise<number[][][]> | null} */
let arcs = null;

/** Arcs of the TopoJSON in degrees: whole numbers, each the change from the one before. */
async function read() {
  const answer = await fetch(FILE);
  if (!answer.ok) throw new Error(`the coast cannot be read: ${answer.status}`);
  const { transform: { scale, translate }, arcs: packed } = await answer.json();
  return packed.map((/** @type {number[][]} */ arc) => {
    let x = 0, y = 0;
    return arc.map(([dx, dy]) => { x += dx; y += dy; return [translate[0] + scale[0] * x, translate[1] + scale[1] * y]; });
  });
}

/**
 * Azimuthal equidistant about a place, on the sphere that fits the ellipsoid there.
 * @param {number} lon0 degrees @param {number} lat0
 * @returns {(lon: number, lat: number) => number[]} km east and north
 */
export function projection(lon0, lat0) {
  const s0 = Math.sin(lat0 * RAD), c0 = Math.cos(lat0 * RAD);
  const w = Math.sqrt(1 - E2 * s0 * s0), across = A / w, along = (A * (1 - E2)) / w ** 3;
  return (lon, lat) => {
    const s = Math.sin(lat * RAD), c = Math.cos(lat * RAD), turn = (lon - lon0) * RAD;
    const away = Math.acos(Math.max(-1, Math.min(1, s0 * s + c0 * c * Math.cos(turn))));
    const k = away < 1e-9 ? 1 : away / Math.sin(away);
    return [across * k * c * Math.sin(turn), along * k * (c0 * s - s0 * c * Math.cos(turn))];
  };
}

/**
 * @param {any} frame of a model; without longitudes there is no coast
 * @returns {Promise<Coast | null>}
 */
export async function coast(frame) {
  if (frame?.kind !== "geographic") return null;
  arcs ??= read();
  const place = projection(frame.lon0, frame.lat0);
  const found = /** @type {Coast} */ ({ lines: [], boxes: [] });
  for (const arc of await arcs) {
    /** @type {number[][]} */
    let line = [];
    const end = () => {
      if (line.length > 1) {
        const xs = line.map(([x]) => x), ys = line.map(([, y]) => y);
        found.lines.push(line);
        found.boxes.push([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]);
      }
      line = [];
    };
    for (const [lon, lat] of arc) {
      const point = place(lon, lat);
      if (Math.hypot(point[0], point[1]) < FAR) line.push(point);
      else end();
    }
    end();
  }
  return found;
}

/**
 * One path of what is in a part of the map.
 * @param {Coast} coast @param {number[]} part west, south, east, north, km
 * @param {(x: number, y: number) => number[]} toPixel of km
 */
export function drawn({ lines, boxes }, [west, south, east, north], toPixel) {
  let d = "";
  lines.forEach((line, i) => {
    const [a, b, c, e] = boxes[i];
    if (a > east || c < west || b > north || e < south) return;
    d += line.map(([x, y], k) => { const [column, row] = toPixel(x, y); return `${k ? "L" : "M"}${column.toFixed(1)} ${row.toFixed(1)}`; }).join("");
  });
  return d;
}

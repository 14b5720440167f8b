// @ts-check
/** Drawings of the page as files of their own: SVG, and PDF made of it. */

import { svg } from "/dashboard/dom.js";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-size", "font-family", "paint-order", "text-anchor"];
// heights of a scale of colours with its words and of a line, width of a letter, what words stand off the edge, pixels
const SCALE = 34, LINE = 18, LETTER = 6.2, EDGE = 4;
const INK = "#111";
const POINTS = 72 / 96;

/** A copy whose parts look as they do on the page. @param {SVGElement} drawing */
export function styled(drawing) {
  const copy = /** @type {SVGElement} */ (drawing.cloneNode(true));
  copy.removeAttribute("class");
  const [ours, theirs] = [drawing, copy].map((one) => [...one.querySelectorAll("*")]);
  ours.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) theirs[i].setAttribute(name, style.getPropertyValue(name));
    theirs[i].removeAttribute("class");
  });
  return copy;
}

/**
 * @param {SVGElement} drawing
 * @param {string} title
 * @returns {SVGElement} a copy with its styles
 */
export function standalone(drawing, title) {
  const copy = styled(drawing);
  const [, , width, height] = (drawing.getAttribute("viewBox") ?? "0 0 1 1").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  // what the page does not show beyond its edge would lie on the legend below
  const inside = svg("g", { "clip-path": "url(#edge)" }, [...copy.children]);
  copy.replaceChildren(svg("title", {}, title), svg("rect", {
    width, height, fill: getComputedStyle(/** @type {Element} */ (drawing.parentElement)).backgroundColor,
  }), svg("clipPath", { id: "edge" }, svg("rect", { width, height })), inside);
  return copy;
}

/**
 * Put the colours of a canvas below a drawing's marks, and their scale under it.
 * @param {SVGElement} figure of `standalone`
 * @param {HTMLCanvasElement} canvas as large as the drawing
 * @param {string[]} colours
 * @param {string[]} words at the left, in the middle and at the right of the scale
 * @param {string} last below them
 * @param {{mark: Element, words: string}[]} [marks] what arrows mean
 */
export function withField(figure, canvas, colours, words, last, marks = []) {
  const { width, height } = canvas, [title, ground] = figure.children;
  ground.setAttribute("fill", "#fff");
  title.after(ground, svg("image", { width, height, href: canvas.toDataURL() }));
  // the page's own ink may be light
  for (const { mark } of marks) for (const path of mark.children) path.setAttribute("stroke", INK);
  withLegend(figure, [{ colours, words }], marks, [last], INK);
}

/**
 * Put scales of colours, what marks mean, and words under a drawing.
 * @param {SVGElement} figure of `standalone`
 * @param {{colours: string[], words: string[]}[]} scales with words at the left, in the middle and at the right
 * @param {{mark: Element, words: string}[]} marks with styles of their own, 10 pixels high
 * @param {string[]} texts a paragraph each
 * @param {string} ink colour of the words
 */
export function withLegend(figure, scales, marks, texts, ink) {
  const [, , width, height] = (figure.getAttribute("viewBox") ?? "").split(" ").map(Number);
  const text = { "font-size": "12px", "font-family": "sans-serif", fill: ink };
  let y = height;
  for (const { colours, words } of scales) {
    figure.append(
      ...colours.map((fill, i) => svg("rect", { x: (i * width) / colours.length, y: y + 4, width: width / colours.length + 0.5, height: 8, fill })),
      ...words.map((word, i) => svg("text", { ...text, x: [EDGE, width / 2, width - EDGE][i], y: y + 28, "text-anchor": ["start", "middle", "end"][i] }, word)));
    y += SCALE;
  }
  for (const { mark, words } of marks) {
    figure.append(svg("g", { transform: `translate(${EDGE} ${y + 2})` }, mark), svg("text", { ...text, x: EDGE + Number(mark.getAttribute("width")) + 6, y: y + 12 }, words));
    y += LINE;
  }
  for (const line of texts.flatMap((paragraph) => wrapped(paragraph, Math.floor((width - 2 * EDGE) / LETTER)))) {
    figure.append(svg("text", { ...text, x: EDGE, y: y + 12 }, line));
    y += LINE;
  }
  figure.setAttribute("viewBox", `0 0 ${width} ${y}`);
  figure.setAttribute("height", String(y));
  figure.children[1].setAttribute("height", String(y));
}

/** @param {string} text @param {number} most letters a line */
function wrapped(text, most) {
  return text.split(" ").reduce((lines, word) => {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    return longer.length > most ? [...lines, word] : [...lines.slice(0, -1), longer];
  }, [""]);
}

/** @param {SVGElement} figure of `standalone` @param {string} name without its end */
export function saveSvg(figure, name) {
  save(new Blob([new XMLSerializer().serializeToString(figure)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** A page for each. @param {SVGElement[]} figures of `standalone` @param {string} name without its end */
export async function savePdf(figures, name) {
  const { jsPDF, svg2pdf } = await import("/dashboard/vendor/figure.js");
  /** @type {any} */
  let file = null;
  for (const figure of figures) {
    const [width, height] = ["width", "height"].map((side) => POINTS * Number(figure.getAttribute(side)));
    const orientation = width > height ? "landscape" : "portrait";
    if (file) file.addPage([width, height], orientation);
    else file = new jsPDF({ unit: "pt", format: [width, height], orientation, compress: true });
    await svg2pdf(printable(figure), file, { x: 0, y: 0, width, height });
  }
  file.setProperties({ title: figures[0]?.querySelector("title")?.textContent ?? name, creator: "afterslip" });
  save(file.output("blob"), `${name}.pdf`);
}

/** What PDF draws otherwise: an outline lies above its letters, and its own fonts lack a minus. @param {SVGElement} figure */
function printable(figure) {
  for (const text of figure.querySelectorAll("text")) {
    text.setAttribute("font-family", "helvetica");
    text.setAttribute("stroke", "none");
    text.textContent = (text.textContent ?? "").replaceAll("\u2212", "-");
  }
  return figure;
}

/** @param {Blob} content @param {string} name */
function save(content, name) {
  const href = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
  URL.revokeObjectURL(href);
}

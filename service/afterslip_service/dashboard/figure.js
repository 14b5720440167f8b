// @ts-check
/** Drawings of the page as files of their own: SVG, and PDF made of it. */

import { svg } from "/dashboard/dom.js";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-size", "font-family", "paint-order", "text-anchor"];
// height of a scale of colours with its words, pixels
const SCALE = 52;
const POINTS = 72 / 96;

/**
 * @param {SVGElement} drawing
 * @param {string} title
 * @returns {SVGElement} a copy with its styles
 */
export function standalone(drawing, title) {
  const copy = /** @type {SVGElement} */ (drawing.cloneNode(true));
  const [ours, theirs] = [drawing, copy].map((one) => [...one.querySelectorAll("*")]);
  ours.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) theirs[i].setAttribute(name, style.getPropertyValue(name));
    theirs[i].removeAttribute("class");
  });
  const [, , width, height] = (drawing.getAttribute("viewBox") ?? "0 0 1 1").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(svg("title", {}, title), svg("rect", {
    width, height, fill: getComputedStyle(/** @type {Element} */ (drawing.parentElement)).backgroundColor,
  }));
  return copy;
}

/**
 * Put the colours of a canvas below a drawing's marks, and their scale under it.
 * @param {SVGElement} figure of `standalone`
 * @param {HTMLCanvasElement} canvas
 * @param {string[]} colours
 * @param {string[]} words at the left, in the middle and at the right of the scale
 * @param {string} last below them
 */
export function withField(figure, canvas, colours, words, last) {
  const { width, height } = canvas, whole = height + SCALE;
  figure.setAttribute("viewBox", `0 0 ${width} ${whole}`);
  figure.setAttribute("height", String(whole));
  const [title, ground] = figure.children;
  ground.setAttribute("height", String(whole));
  ground.setAttribute("fill", "#fff");
  title.after(ground, svg("image", { width, height, href: canvas.toDataURL() }));
  const text = { "font-size": "12px", "font-family": "sans-serif", fill: "#111" };
  figure.append(
    ...colours.map((fill, i) => svg("rect", { x: (i * width) / colours.length, y: height + 4, width: width / colours.length + 0.5, height: 8, fill })),
    ...words.map((word, i) => svg("text", { ...text, x: (i * width) / 2, y: height + 28, "text-anchor": ["start", "middle", "end"][i] }, word)),
    svg("text", { ...text, x: 0, y: height + 46 }, last));
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

// @ts-check
/** A drawing of the page as a file of its own. */

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-size", "font-family", "paint-order", "text-anchor"];

/**
 * @param {SVGElement} drawing
 * @param {string} title
 * @returns {string} SVG with its styles
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
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", width);
  ground.setAttribute("height", height);
  ground.setAttribute("fill", getComputedStyle(/** @type {Element} */ (drawing.parentElement)).backgroundColor);
  const name = document.createElementNS("http://www.w3.org/2000/svg", "title");
  name.textContent = title;
  copy.prepend(name, ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {string} content @param {string} name */
export function save(content, name) {
  const href = URL.createObjectURL(new Blob([content], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
  URL.revokeObjectURL(href);
}

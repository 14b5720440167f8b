// @ts-check
/** Elements without a framework. */

/**
 * Make an element; texts are always texts, never markup.
 * @param {string} tag name, with classes behind dots
 * @param {Record<string, any>} [attributes] `on...` are listeners, null is left out
 * @param {...any} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  fill(element, classes, attributes, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  fill(element, [], attributes, children);
  return element;
}

/** @param {any} element @param {string[]} classes @param {any} attributes @param {any[]} children */
function fill(element, classes, attributes, children) {
  if (classes.length) element.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
}

/** Parts of a text, what stands between backticks as code. @param {string} text */
export function marked(text) {
  return text.split("`").map((part, i) => i % 2 ? h("code", {}, part) : part);
}

/** @param {Element} parent @param {...any} children */
export function put(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
}

/** Of a table with the class stacked: where it is narrow each cell stands on a line of its own, behind its name. @param {string[]} names @param {HTMLElement[]} cells */
export function row(names, cells) {
  cells.forEach((cell, i) => { cell.dataset.name = names[i]; });
  return h("tr", {}, cells);
}

/**
 * Call at most once in a while; the last call is never lost.
 * @param {() => void} action
 * @param {number} ms
 */
export function calm(action, ms) {
  let timer = 0;
  return () => {
    if (!timer) timer = window.setTimeout(() => { timer = 0; action(); }, ms);
  };
}

/** Copies the address of this view; returns what came of it. */
export async function copyAddress() {
  try {
    await navigator.clipboard.writeText(location.href);
    return "Copied.";
  } catch {
    // a page over plain HTTP from elsewhere may not write there
    return "The address of this page is the link.";
  }
}

// Elements made from names, attributes and children. Text is always text: nothing here, or anywhere on the page, parses markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An HTML element; children are nodes or text. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An SVG element; what colours and places it are attributes, so that it looks the same in a file of its own. */
export function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** A line of text in a picture. */
export function words(x, y, text, attributes = {}) {
  return shape("text", { x, y, ...attributes }, text);
}

/** Text in the middle of `x`, in as many lines as fit `wide`; the first at `y`, and where the last stands. */
export function wrapped(x, y, text, wide, size, fill) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && widthOf(longer, size) > wide) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  const high = Math.round(size * 1.35);
  const nodes = lines.map((line, at) => words(x, y + at * high, line, { "text-anchor": "middle", "font-size": size, fill }));
  return { nodes, bottom: y + (lines.length - 1) * high };
}

/** A picture of its own size. */
export function picture(width, height, attributes, ...children) {
  const box = { width, height, viewBox: `0 0 ${width} ${height}` };
  return shape("svg", { xmlns: SVG, "font-family": FONT, "font-size": 13, ...box, ...attributes }, ...children);
}

export const FONT =
  'system-ui, "Noto Sans", "Noto Sans CJK KR", "Noto Sans KR", "Noto Sans Arabic", "Noto Sans Devanagari", sans-serif';

export function byId(name) {
  return document.getElementById(name);
}

const pencil = document.createElement("canvas").getContext("2d");

/** How wide a text of this size in pixels is. */
export function widthOf(text, size = 13) {
  pencil.font = `${size}px ${FONT}`;
  return pencil.measureText(text).width;
}

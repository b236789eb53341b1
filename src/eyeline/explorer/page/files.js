// What is shown as a file: the pictures below each other as SVG or PNG, the values as JSON.

import { inks } from "./colours.js";
import { picture, shape, words } from "./dom.js";

const LARGEST = 12000;

/** One picture of all panels: each a title and its pictures below each other, panels side by side. */
function sheet(panels) {
  const ink = inks();
  const nodes = [];
  let [left, height] = [12, 0];
  for (const panel of panels.filter((each) => each.length)) {
    const { trace } = panel;
    nodes.push(
      words(left, 28, `${trace.name} (${trace.model.architecture})`, { "font-size": 16, "font-weight": 700, fill: ink.ink }),
    );
    nodes.push(words(left, 50, `${trace.source.text} → ${trace.target.text}`, { fill: ink.ink }));
    let [top, wide] = [62, 0];
    for (const drawn of panel.pictures()) {
      drawn.setAttribute("x", left);
      drawn.setAttribute("y", top);
      top += Number(drawn.getAttribute("height")) + 14;
      wide = Math.max(wide, Number(drawn.getAttribute("width")));
      nodes.push(drawn);
    }
    left += wide + 24;
    height = Math.max(height, top);
  }
  const back = shape("rect", { width: left, height, fill: ink.card });
  return { svg: picture(left, height, {}, back, ...nodes), width: left, height };
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function svgBlob(panels) {
  const drawn = sheet(panels);
  return { ...drawn, blob: new Blob([new XMLSerializer().serializeToString(drawn.svg)], { type: "image/svg+xml" }) };
}

export function saveSvg(panels) {
  save(svgBlob(panels).blob, "attention.svg");
}

/** Twice as sharp as the screen's points, or as sharp as a browser can. */
export async function savePng(panels) {
  const { blob, width, height } = svgBlob(panels);
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode();
  const scale = Math.min(2, LARGEST / width, LARGEST / height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  save(await new Promise((done) => canvas.toBlob(done, "image/png")), "attention.png");
}

export function saveJson(panels) {
  const traces = panels.map(({ trace }) => trace);
  const own = new Set(["drawn", "scoreRange", "range"]); // what pictures remember of them
  const text = JSON.stringify({ traces }, (key, value) => (own.has(key) ? undefined : value), 1);
  save(new Blob([`${text}\n`], { type: "application/json" }), "attention.json");
}

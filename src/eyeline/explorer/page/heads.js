// Which attention is shown: of a layer, of a head of it, or the mean of its heads. Knows the looks of a trace.

import { heatParts, isDark } from "./colours.js";
import { element } from "./dom.js";
import { isHere, sourceLength, weightsAt } from "./traces.js";
import { say } from "./words.js";

const LARGEST = 44;

/** The nodes to choose with; none where there is one attention or no attention. */
export function headPicker(trace, shown, want) {
  if (trace.looks.length < 2) return [];
  const now = trace.looks[shown];
  const layers = element("select", { class: "layer" });
  const names = [...new Set(trace.looks.map((look) => look.layer))];
  for (const layer of names)
    layers.append(element("option", { value: layer ?? "" }, layer === null ? say("own") : String(layer)));
  layers.value = now.layer ?? "";
  const heads = element("select", { class: "head" });
  for (const { head } of trace.looks.filter((look) => look.layer === now.layer)) {
    heads.append(element("option", { value: head ?? "" }, head === null ? say("mean") : String(head)));
  }
  heads.value = now.head ?? "";
  heads.disabled = now.layer === null;
  layers.addEventListener("change", () => {
    const layer = layers.value === "" ? null : Number(layers.value);
    const there = trace.looks.filter((look) => look.layer === layer);
    want(layer, (there.find((look) => look.head === now.head) ?? there[0]).head);
  });
  heads.addEventListener("change", () => want(now.layer, heads.value === "" ? null : Number(heads.value)));
  const why = trace.shown === shown ? say(`chosen_${trace.chosen}`) : say("chosen_asked");
  const row = element(
    "p",
    { class: "pickers" },
    element("label", {}, `${say("layer")} `, layers),
    " ",
    element("label", {}, `${say("head")} `, heads),
    " ",
    element("span", { class: "note" }, why),
  );
  return trace.looks.every(isHere)
    ? [row, thumbnails(trace, shown, want)]
    : [row, element("p", { class: "note" }, say("tooLarge"))];
}

/** All of them, small. */
function thumbnails(trace, shown, want) {
  const dark = isDark();
  const buttons = trace.looks.map((look, at) => {
    const name =
      look.layer === null
        ? say("own")
        : `${say("layer")} ${look.layer}, ${look.head === null ? say("mean") : `${say("head")} ${look.head}`}`;
    const button = element(
      "button",
      { type: "button", class: "thumbnail", "aria-pressed": String(at === shown), title: name, "aria-label": name },
      small(trace, look, dark),
    );
    button.addEventListener("click", () => want(look.layer, look.head));
    return button;
  });
  const groups = [...new Set(trace.looks.map((look) => look.layer))].map((layer) => {
    const own = buttons.filter((_, at) => trace.looks[at].layer === layer);
    return element("span", { class: "layer" }, element("small", {}, layer === null ? say("own") : String(layer)), ...own);
  });
  return element("div", { class: "thumbnails", role: "group", "aria-label": say("lookAt") }, ...groups);
}

function small(trace, look, dark) {
  const [width, height] = [sourceLength(trace), trace.steps.length];
  const canvas = element("canvas", { width, height });
  const image = new ImageData(width, height);
  for (let row = 0; row < height; row += 1) {
    weightsAt(trace, look, row).forEach((weight, at) => {
      const colour = heatParts(weight, dark);
      const place = 4 * (row * width + at);
      for (let part = 0; part < 3; part += 1) image.data[place + part] = colour[part];
      image.data[place + 3] = 255;
    });
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  const scale = LARGEST / Math.max(width, height);
  canvas.style.width = `${Math.max(8, width * scale)}px`;
  canvas.style.height = `${Math.max(8, height * scale)}px`;
  return canvas;
}

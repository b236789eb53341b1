// The hypotheses that a beam search kept, as a tree from left to right. Knows the beam of a trace.

import { inks } from "./colours.js";
import { element, picture, shape, widthOf, words } from "./dom.js";
import { label } from "./labels.js";
import { number, say } from "./words.js";

const ROW = 24;
const GAP = 26;

/** The way back from a hypothesis to the first token, as `level:place` names. */
function wayTo(levels, level, place) {
  const way = new Set();
  for (let at = level, here = place; at >= 0; at -= 1) {
    way.add(`${at}:${here}`);
    here = levels[at][here].parent;
  }
  return way;
}

export function beamPicture(trace) {
  const { levels, ended } = trace.beam;
  const ink = inks();
  const best = ended.length ? wayTo(levels, ended[0].level, ended[0].place) : new Set();
  const ends = new Map();
  ended.forEach((one, rank) => {
    const name = `${one.level}:${one.place}`;
    ends.set(name, [...(ends.get(name) ?? []), rank + 1]);
  });
  const texts = levels.map((level) => level.map((kept) => label(kept.token, 10)));
  const x = [34];
  texts.forEach((level, at) => {
    const wide = Math.max(18, ...level.map((text, place) => widthOf(text, 13) + (ends.has(`${at}:${place}`) ? 40 : 0)));
    x.push(x[at] + wide + GAP);
  });
  const most = Math.max(1, ...levels.map((level) => level.length));
  const y = (place) => 16 + place * ROW;
  const nodes = [shape("circle", { cx: 8, cy: y(0), r: 4, fill: ink.ink })];
  levels.forEach((level, at) => {
    level.forEach((kept, place) => {
      if (kept.score === null) return;
      const name = `${at}:${place}`;
      const strong = best.has(name);
      const from = at === 0 ? { x: 12, y: y(0) } : { x: x[at] - GAP + 2, y: y(kept.parent) };
      const style = { fill: "none", stroke: strong ? ink.weight : ink.grid, "stroke-width": strong ? 2.4 : 1.4 };
      const middle = (from.x + x[at] - 3) / 2;
      nodes.push(
        shape("path", {
          d: `M${from.x} ${from.y} C${middle} ${from.y} ${middle} ${y(place)} ${x[at] - 3} ${y(place)}`,
          ...style,
        }),
      );
      const told = shape("title", {}, `${kept.token}: ${number(kept.score)}`);
      nodes.push(
        words(x[at], y(place) + 5, texts[at][place], { fill: strong ? ink.ink : ink.faint, "font-weight": strong ? 700 : 400 }),
      );
      nodes.at(-1).append(told);
      if (ends.has(name)) {
        nodes.push(
          words(x[at] + widthOf(texts[at][place], 13) + 5, y(place) + 5, `■ ${ends.get(name).join(",")}`, {
            fill: ink.copy,
            "font-size": 12,
          }),
        );
      }
    });
  });
  return picture(Math.ceil(x.at(-1) + 10), y(most - 1) + 20, { role: "img", "aria-label": say("treeTitle") }, ...nodes);
}

/** The tree with its finished outputs as a list. */
export function beamTree(trace) {
  if (trace.beam === null) return element("p", { class: "note" }, say("noTree"));
  const rows = trace.beam.ended.map((one, at) =>
    element(
      "li",
      { value: at + 1 },
      element("bdi", {}, one.text),
      ` ${say("log", number(one.score))}${one.finished ? "" : ` · ${say("unfinished")}`}`,
    ),
  );
  return element(
    "div",
    {},
    element("p", { class: "note" }, say("treeHelp")),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": say("treeTitle") }, beamPicture(trace)),
    element("p", { class: "note" }, say("ended")),
    element("ol", { class: "ended" }, ...rows),
  );
}

// The likeliest next symbols of a step, as bars that can be chosen, and the gate between generating and copying.

import { shape, widthOf, words } from "./dom.js";
import { outputLabel } from "./traces.js";
import { number, probable, say } from "./words.js";

const ROW = 27;

/** Their nodes and where they end. `steer(candidate)` is called for one that is chosen; without it none can be. */
export function candidates(trace, step, { left, wide, top, ink, steer }) {
  const now = trace.steps[step];
  const nodes = [];
  let y = top;
  if (now.generating !== undefined) y = gate(nodes, now.generating, left, wide, y, ink);
  nodes.push(words(left, y + 13, say("symbol"), { fill: ink.faint, "font-size": 12 }));
  y += 20;
  const texts = now.candidates.map((one) => outputLabel(trace, one.id, one.token, 22));
  const names = Math.min(wide * 0.45, Math.max(60, ...texts.map((text) => widthOf(text, 15) + 38)));
  const room = wide - names - 58;
  now.candidates.forEach((one, at) => {
    const taken = one.id === trace.target.ids[step];
    nodes.push(row(one, texts[at], taken, { left, names, room, wide, y, ink }, steer));
    y += ROW;
  });
  if (!now.candidates.some((one) => one.id === trace.target.ids[step])) {
    const text = `● ${outputLabel(trace, trace.target.ids[step], trace.target.tokens[step], 22)}  ${probable(now.p)}`;
    nodes.push(words(left + 4, y + 17, text, { fill: ink.ink, "font-weight": 700, "font-size": 15 }));
    y += ROW;
  }
  return { nodes, bottom: y };
}

function row(one, text, taken, { left, names, room, wide, y, ink }, steer) {
  const parts = [
    shape("rect", {
      class: "hit",
      x: left,
      y: y + 1,
      width: wide,
      height: ROW - 3,
      rx: 5,
      fill: taken ? ink.shade : "transparent",
      stroke: taken ? ink.grid : "none",
    }),
    words(left + 8, y + 18, taken ? "●" : "○", { fill: taken ? ink.weight : ink.faint, "font-size": 12 }),
    words(left + 26, y + 18, text, { fill: ink.ink, "font-size": 15, "font-weight": taken ? 700 : 400 }),
  ];
  const copied = Math.min(one.p, one.copied);
  const whole = Math.max(1, room * one.p);
  parts.push(shape("rect", { x: left + names, y: y + 7, width: whole, height: ROW - 15, rx: 2, fill: ink.weight }));
  if (copied > 0) {
    const share = room * copied;
    parts.push(
      shape("rect", { x: left + names + whole - share, y: y + 7, width: share, height: ROW - 15, rx: 2, fill: ink.copy }),
    );
  }
  parts.push(words(left + names + whole + 6, y + 18, probable(one.p), { fill: ink.ink, "font-size": 12 }));
  const name = taken ? `${text}, ${number(one.p, 3)}: ${say("chosenNow")}` : say("steer", text, number(one.p, 3));
  if (!steer || taken) return shape("g", {}, shape("title", {}, name), ...parts);
  const button = shape(
    "g",
    { role: "button", tabindex: 0, class: "candidate", "aria-label": name, "data-id": one.id },
    shape("title", {}, name),
    ...parts,
  );
  button.addEventListener("click", () => steer(one));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    steer(one);
  });
  return button;
}

/** How much is generated and how much is copied. */
function gate(nodes, generating, left, wide, top, ink) {
  const share = wide * generating;
  nodes.push(words(left, top + 13, say("gate"), { fill: ink.faint, "font-size": 12 }));
  nodes.push(shape("rect", { x: left, y: top + 18, width: share, height: 10, fill: ink.weight }));
  nodes.push(shape("rect", { x: left + share, y: top + 18, width: wide - share, height: 10, fill: ink.copy }));
  nodes.push(words(left, top + 42, say("generate", probable(generating)), { fill: ink.weight, "font-size": 12 }));
  nodes.push(
    words(left + wide, top + 42, say("copy", probable(1 - generating)), {
      fill: ink.copy,
      "font-size": 12,
      "text-anchor": "end",
    }),
  );
  return top + 50;
}

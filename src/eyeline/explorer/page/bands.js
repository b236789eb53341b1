// What stands over the source's tokens in the picture of a step: scores as bars, the tokens, weights as bars, what coverage
// remembers, arrows of pointers and copies, and the vectors that are summed. Knows a trace, a step and columns.

import { signed } from "./colours.js";
import { shape, words } from "./dom.js";
import { coverageAt, position, rangeOf, scoresAt, weightsAt } from "./traces.js";
import { number, probable, say } from "./words.js";

const TITLE = { "font-size": 12 };
const MANY = 80; // columns

/** The bands from the top down: their nodes, where they end, and `lit(column)`, which lights a column up. `light(column)` is told
 * where the mouse is. */
export function bands(trace, look, step, columns, ink, light) {
  const weights = weightsAt(trace, look, step);
  const nodes = [];
  let y = 4;
  if (trace.model.pointing) y = arcs(nodes, trace, step, columns, ink, y);
  const scores = scoresAt(trace, look, step);
  if (scores === null) {
    nodes.push(words(columns.titles, y + 12, say("noScores"), { ...TITLE, fill: ink.faint }));
    y += 20;
  } else {
    y = scoreBars(nodes, look, scores, columns, ink, y);
  }
  const copied = new Map(trace.steps[step].copied ?? []);
  const labels = [];
  y = tokens(nodes, labels, weights, columns, ink, y, copied);
  y = weightBars(nodes, weights, columns, ink, y);
  if (copied.size) y = copies(nodes, copied, columns, ink, y);
  const remembered = coverageAt(trace, step);
  if (remembered !== null) y = coverageBars(nodes, trace, remembered, columns, ink, y);
  if (look.parts) y = vectors(nodes, look, weights, columns, ink, y);
  const lamp = shape("rect", { y: 2, height: y - 4, rx: 4, fill: ink.mark, visibility: "hidden" });
  const lit = (column) => {
    labels.forEach((node, at) => node.setAttribute("text-decoration", at === column ? "underline" : "none"));
    lamp.setAttribute("visibility", column === null ? "hidden" : "visible");
    if (column !== null) lamp.setAttribute("x", columns.items[column].left);
    if (column !== null) lamp.setAttribute("width", columns.items[column].width);
  };
  return { nodes: [lamp, ...nodes, area(columns, y, light)], bottom: y, lit };
}

function title(nodes, columns, y, text, ink) {
  nodes.push(words(columns.titles, y + 12, text, { ...TITLE, fill: ink.faint }));
  return y + 18;
}

/** Scores above and below zero, on one scale for all steps, so that steps can be compared. */
function scoreBars(nodes, look, scores, columns, ink, top) {
  const y = title(nodes, columns, top, say("scores"), ink) + 12;
  const [low, high] = look.scoreRange ?? (look.scoreRange = rangeOf(look.scores));
  const scale = 76 / (high - low || 1);
  const zero = y + high * scale;
  nodes.push(shape("path", { d: `M${columns.start} ${zero} H${columns.end}`, stroke: ink.grid }));
  scores.forEach((score, at) => {
    const item = columns.items[at];
    if (score === null) return;
    const height = Math.max(1, Math.abs(score) * scale);
    const up = score >= 0;
    nodes.push(
      shape("rect", { x: item.left + 4, y: up ? zero - height : zero, width: item.width - 8, height, fill: ink.score, rx: 1 }),
    );
    if (item.width >= 34) {
      const place = up ? zero - height - 3 : zero + height + 11;
      nodes.push(words(item.middle, place, number(score, 1), { "text-anchor": "middle", "font-size": 10.5, fill: ink.faint }));
    }
  });
  return y + 76 + 14;
}

function tokens(nodes, labels, weights, columns, ink, top, copied) {
  columns.items.forEach((item, at) => {
    if (copied.has(at)) {
      const box = { x: item.left + 1, y: top + 2, width: item.width - 2, height: 21, rx: 4, fill: "none" };
      nodes.push(shape("rect", { ...box, stroke: ink.copy, "stroke-width": 1.6 }));
    }
    const style = { "text-anchor": "middle", "font-size": 14, fill: ink.ink, "font-weight": weights[at] >= 0.3 ? 700 : 400 };
    labels.push(words(item.middle, top + 17, item.text, style));
  });
  nodes.push(...labels);
  return top + 28;
}

function weightBars(nodes, weights, columns, ink, top) {
  const y = title(nodes, columns, top, say("softmax"), ink) + 12;
  const height = 56;
  const foot = y + height;
  nodes.push(shape("path", { d: `M${columns.start} ${foot} H${columns.end}`, stroke: ink.grid }));
  weights.forEach((weight, at) => {
    const item = columns.items[at];
    if (weight > 0) {
      const tall = Math.max(0.6, weight * height);
      const place = { x: item.left + 4, y: foot - tall, width: item.width - 8, height: tall, rx: 1 };
      nodes.push(shape("rect", { ...place, fill: ink.weight }));
    }
    if (weight >= 0.005) {
      const place = foot - weight * height - 3;
      nodes.push(words(item.middle, place, probable(weight), { "text-anchor": "middle", "font-size": 10.5, fill: ink.ink }));
    }
  });
  return foot + 6;
}

/** How much of the probability of the symbol is copied from each place that holds it. */
function copies(nodes, copied, columns, ink, top) {
  const y = title(nodes, columns, top, say("fromSource"), ink);
  for (const [at, mass] of copied) {
    const item = columns.items[at];
    nodes.push(
      shape("path", {
        d: `M${item.middle} ${y} V${y + 20} M${item.middle - 5} ${y + 13} L${item.middle} ${y + 20} L${item.middle + 5} ${y + 13}`,
        stroke: ink.copy,
        "stroke-width": 1.2 + 4 * mass,
        fill: "none",
      }),
    );
    nodes.push(words(item.middle, y + 33, probable(mass), { "text-anchor": "middle", "font-size": 10.5, fill: ink.copy }));
  }
  return y + 38;
}

function coverageBars(nodes, trace, remembered, columns, ink, top) {
  const y = title(nodes, columns, top, `${say("coverage")} (${say(`coverage_${trace.coverage.kind}`)})`, ink) + 10;
  const [, high] = trace.coverage.range ?? (trace.coverage.range = rangeOf(trace.coverage.before));
  const height = 26;
  const foot = y + height;
  nodes.push(shape("path", { d: `M${columns.start} ${foot} H${columns.end}`, stroke: ink.grid }));
  remembered.forEach((sum, at) => {
    const item = columns.items[at];
    const tall = (height * sum) / Math.max(high, 1);
    if (tall > 0.3)
      nodes.push(
        shape("rect", { x: item.left + 4, y: foot - tall, width: item.width - 8, height: tall, fill: ink.coverage, rx: 1 }),
      );
    if (sum >= 0.05 && item.width >= 26) {
      nodes.push(
        words(item.middle, foot - tall - 2, number(sum, 1), { "text-anchor": "middle", "font-size": 10, fill: ink.faint }),
      );
    }
  });
  return foot + 6;
}

/** A few numbers of each vector, as strong as its weight. Among very many those that can hardly be seen are left out. */
function vectors(nodes, look, weights, columns, ink, top) {
  const y = title(nodes, columns, top, say(look.layer === null ? "states" : "headStates"), ink);
  const cell = 5.5;
  const least = weights.length > MANY ? 0.005 : 0;
  weights.forEach((weight, at) => {
    if (weight < least) return;
    const item = columns.items[at];
    const wide = Math.min(22, item.width - 8);
    const strip = look.parts[at].map((value, part) =>
      shape("rect", { x: item.middle - wide / 2, y: y + part * cell, width: wide, height: cell, fill: signed(value, ink) }),
    );
    const frame = { x: item.middle - wide / 2, y, width: wide, height: cell * strip.length, fill: "none", stroke: ink.grid };
    nodes.push(shape("g", { opacity: 0.14 + 0.86 * weight }, ...strip, shape("rect", frame)));
  });
  return y + cell * look.parts[0].length + 2;
}

/** The way of a pointer so far: arrows from each position to the next one, the last of them strong. */
function arcs(nodes, trace, step, columns, ink, top) {
  const places = trace.target.ids.slice(0, step + 1).map((id) => position(id) ?? trace.source.tokens.length - 1);
  const foot = top + 54;
  for (let at = 1; at < places.length; at += 1) {
    const [from, to] = [columns.items[places[at - 1]].middle, columns.items[places[at]].middle];
    const rise = Math.min(48, 14 + Math.abs(to - from) * 0.18);
    const last = at === places.length - 1;
    const way = `M${from} ${foot} C${from} ${foot - rise * 1.3} ${to} ${foot - rise * 1.3} ${to} ${foot} m-4 -6 l4 6 l4 -6`;
    nodes.push(
      shape("path", { d: way, fill: "none", stroke: ink.copy, "stroke-width": last ? 2.6 : 1.3, opacity: last ? 1 : 0.45 }),
    );
  }
  const now = columns.items[places[step]];
  nodes.push(shape("circle", { cx: now.middle, cy: foot + 4, r: 4, fill: ink.copy }));
  return foot + 10;
}

/** What the mouse meets over the columns: drawn last, and nothing to be seen. */
function area(columns, bottom, light) {
  const title = shape("title", {});
  const place = { x: columns.start, y: 2, width: columns.end - columns.start, height: bottom - 4, fill: "transparent" };
  const node = shape("rect", place, title);
  node.addEventListener("pointermove", (event) => {
    const x = event.clientX - node.ownerSVGElement.getBoundingClientRect().left;
    const at = columns.items.findIndex((item) => x >= item.left && x < item.left + item.width);
    title.textContent = columns.items[at]?.whole ?? "";
    light(at < 0 ? null : at);
  });
  node.addEventListener("pointerleave", () => light(null));
  return node;
}

// How one symbol came about, as a picture from top to bottom: scores over the source, their softmax, the weighted sum, the
// combination, the candidates. Knows a trace and a step; what is above the candidates is drawn by bands.js.

import { bands } from "./bands.js";
import { candidates } from "./candidates.js";
import { inks, signed } from "./colours.js";
import { columnsOf } from "./columns.js";
import { picture, shape, words, wrapped } from "./dom.js";
import { contextAt, scoresAt, strongest, weightsAt } from "./traces.js";
import { number, say } from "./words.js";

const COMBINED = {
  seq2seq: "seq2seq",
  bahdanau: "bahdanau",
  luong: "luong",
  "pointer-network": "pointer",
  "pointer-generator": "pg",
};
const BLOCK = 560;

/** The picture; `centre`, the place across it that should be in view; and `lit(column)`, which lights a source token up. */
export function story(trace, look, step, { room, steer, light }) {
  const ink = inks();
  const columns = columnsOf(trace, room);
  const nodes = [];
  let y = 6;
  let centre = columns.width / 2;
  let lit = () => {};
  if (look !== null && columns.width > room) centre = columns.items[strongest(weightsAt(trace, look, step))].middle;
  const wide = Math.min(room - 8, BLOCK);
  const left = Math.max(4, Math.min(columns.width - wide - 4, centre - wide / 2));
  const middle = left + wide / 2;
  if (look !== null) {
    const titles = Math.max(columns.start, Math.min(left, centre - room / 2 + 8));
    const drawn = bands(trace, look, step, { ...columns, titles }, ink, light);
    lit = drawn.lit;
    nodes.push(...drawn.nodes);
    y = drawn.bottom;
  }
  if (look === null) y = vector(nodes, trace, columns, middle, y, ink);
  else if (look.parts) y = context(nodes, trace, look, step, columns, { middle, wide }, y, ink);
  y = combination(nodes, trace, look, { middle, wide }, y, ink);
  const chosen = candidates(trace, step, { left, wide, top: y, ink, steer });
  nodes.push(...chosen.nodes);
  const named = { role: "group", "aria-label": say("stepTitle", step + 1, trace.target.tokens[step]) };
  return { svg: picture(Math.ceil(columns.width), Math.ceil(chosen.bottom + 6), named, ...nodes), centre, lit };
}

/** Lines from the source's vectors to their weighted sum, as thick as the weights, and the sum itself. */
function context(nodes, trace, look, step, columns, { middle, wide }, top, ink) {
  const weights = weightsAt(trace, look, step);
  const box = top + 46;
  weights.forEach((weight, at) => {
    if (weight < 0.004) return;
    const from = columns.items[at].middle;
    const way = `M${from} ${top} C${from} ${top + 26} ${middle} ${top + 16} ${middle} ${box}`;
    nodes.push(
      shape("path", { d: way, fill: "none", stroke: ink.weight, "stroke-width": 1 + 8 * weight, opacity: 0.25 + 0.6 * weight }),
    );
  });
  const numbers = contextAt(trace, look, step);
  const size = 24;
  const left = middle - (size * numbers.length) / 2;
  numbers.forEach((value, at) => {
    nodes.push(
      shape(
        "rect",
        { x: left + at * size, y: box, width: size, height: 18, fill: signed(value, ink), stroke: ink.grid },
        shape("title", {}, number(value, 3)),
      ),
    );
  });
  const said = `${say("context")} · ${say("norm", number(look.norms[step]))} · ${say("kept", numbers.length, Math.round(100 * look.kept))}`;
  const told = wrapped(middle, box + 34, said, wide, 12, ink.faint);
  nodes.push(...told.nodes);
  return told.bottom + 8;
}

/** The whole source in one vector, of a model that never looks back. */
function vector(nodes, trace, columns, middle, top, ink) {
  const bottom = top + 58;
  for (const item of columns.items) {
    nodes.push(words(item.middle, top + 14, item.text, { "text-anchor": "middle", fill: ink.ink, "font-size": 14 }));
    nodes.push(shape("path", { d: `M${item.middle} ${top + 20} L${middle} ${bottom}`, stroke: ink.grid, "stroke-width": 1.5 }));
  }
  nodes.push(shape("rect", { x: middle - 90, y: bottom, width: 180, height: 26, rx: 5, fill: ink.shade, stroke: ink.grid }));
  nodes.push(words(middle, bottom + 18, say("fixedVector"), { "text-anchor": "middle", fill: ink.ink }));
  return bottom + 32;
}

function combination(nodes, trace, look, { middle, wide }, top, ink) {
  const kind = look?.layer !== null && look !== null ? "heads" : (COMBINED[trace.model.architecture] ?? "heads");
  const text = `${say("combine")}: ${say(`combine_${kind}`)}`;
  nodes.push(arrow(middle, top, top + 14, ink));
  const told = wrapped(middle, top + 30, text, wide, 13, ink.ink);
  nodes.push(...told.nodes, arrow(middle, told.bottom + 6, told.bottom + 20, ink));
  return told.bottom + 24;
}

function arrow(x, top, bottom, ink) {
  return shape("path", {
    d: `M${x} ${top} V${bottom} M${x - 4} ${bottom - 5} L${x} ${bottom} L${x + 4} ${bottom - 5}`,
    fill: "none",
    stroke: ink.faint,
  });
}

/** A step in a sentence, for those who hear the page. */
export function inWords(trace, look, step) {
  const token = trace.target.tokens[step];
  const said = [say("step", step + 1, trace.steps.length), `${token}, ${number(trace.steps[step].p)}`];
  if (look !== null) {
    const weights = weightsAt(trace, look, step);
    const at = strongest(weights);
    said.push(say("looksAt", trace.source.tokens[at], number(weights[at])));
    const scores = scoresAt(trace, look, step);
    if (scores && scores[at] !== null) said.push(`${say("score")} ${number(scores[at])}`);
  }
  return said.join("; ");
}

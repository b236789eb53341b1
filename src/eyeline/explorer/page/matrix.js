// The whole alignment matrix of a pair: rows are output symbols, columns source symbols. On the screen a canvas, which 90,000 cells
// do not slow down; in a file SVG.

import { heat, heatParts, inks, isDark } from "./colours.js";
import { element, FONT, picture, shape, widthOf, words } from "./dom.js";
import { label, runsBack } from "./labels.js";
import { weightsAt } from "./traces.js";
import { say } from "./words.js";

const MARGIN = 8;
const SIDE = 18;
const LARGEST = 30;
const LONGEST = 12;

const known = new WeakMap(); // trace -> what was worked out for it last

/** Where everything of a matrix goes. */
function layout(trace, room) {
  const last = known.get(trace);
  if (last?.room === room) return last.plan;
  const plan = placed(trace, room);
  known.set(trace, { room, plan });
  return plan;
}

function placed(trace, room) {
  const rows = trace.target.tokens.map((token) => label(token, LONGEST));
  const columns = trace.source.tokens.map((token) => label(token, LONGEST));
  const widest = (texts) => texts.reduce((most, text) => Math.max(most, widthOf(text, 13)), 0);
  const left = MARGIN + SIDE + Math.min(120, widest(rows)) + 8;
  const free = room - left - MARGIN;
  const cell = Math.max(4, Math.min(LARGEST, Math.floor(free / columns.length)));
  const upright = widest(columns.slice(0, -1)) <= cell - 2; // END is squeezed a little
  const top = MARGIN + SIDE + (upright ? 20 : Math.min(96, widest(columns)) + 8);
  const size = Math.max(7, Math.min(13, cell - 2));
  const every = Math.max(1, Math.ceil(9 / cell));
  const back = runsBack(trace.source.text);
  return {
    rows,
    columns,
    left,
    top,
    cell,
    upright,
    size,
    every,
    back,
    width: left + cell * columns.length + MARGIN,
    height: top + cell * rows.length + MARGIN,
    x: (at) => left + cell * (back ? columns.length - 1 - at : at),
  };
}

/** Draws itself into `node`; `choose(step)` and `light(column)` are called as the mouse or the keys move. */
export function matrix(trace, look, { choose, light }) {
  const canvas = element("canvas", {});
  const hint = element("p", { class: "note" }, say("matrixHelp"));
  const named = {
    class: "scroll",
    tabindex: 0,
    role: "group",
    "aria-label": say("matrixLabel", trace.target.tokens.length, trace.source.tokens.length),
  };
  const node = element("div", named, canvas);
  let plan = null;
  let pressed = false;

  function draw(step, column, room, shown) {
    plan = layout(trace, room);
    const sharp = window.devicePixelRatio || 1;
    canvas.width = Math.ceil(plan.width * sharp);
    canvas.height = Math.ceil(plan.height * sharp);
    canvas.style.width = `${plan.width}px`;
    canvas.style.height = `${plan.height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(sharp, sharp);
    paint(pen, plan, trace, look, step, column, shown);
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - plan.top) / plan.cell);
    const across = Math.floor((event.clientX - box.left - plan.left) / plan.cell);
    const column = plan.back ? plan.columns.length - 1 - across : across;
    return {
      row: row >= 0 && row < plan.rows.length ? row : null,
      column: column >= 0 && column < plan.columns.length ? column : null,
    };
  }

  canvas.addEventListener("pointerdown", (event) => {
    pressed = true;
    const { row } = at(event);
    if (row !== null) choose(row);
  });
  window.addEventListener("pointerup", () => {
    pressed = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const { row, column } = at(event);
    if (pressed && row !== null) choose(row);
    light(column, row);
  });
  canvas.addEventListener("pointerleave", () => light(null, null));
  return { node: element("div", {}, node, hint), draw };
}

function paint(pen, plan, trace, look, step, column, shown) {
  const ink = inks();
  const { rows, columns, cell, left, top } = plan;
  pen.fillStyle = ink.card;
  pen.fillRect(0, 0, plan.width, plan.height);
  cells(pen, plan, trace, look, shown, isDark());
  if (cell >= 9) grid(pen, plan, ink);
  pen.strokeStyle = ink.score;
  pen.lineWidth = 2;
  pen.strokeRect(left - 1, top + step * cell, cell * columns.length + 2, cell);
  if (column !== null) pen.strokeRect(plan.x(column), top - 1, cell, cell * rows.length + 2);
  pen.font = `12px ${FONT}`;
  pen.fillStyle = ink.faint;
  pen.textBaseline = "middle";
  pen.textAlign = plan.back ? "right" : "left";
  pen.fillText(say(plan.back ? "sourceSideBack" : "sourceSide"), plan.back ? plan.width - MARGIN : left, MARGIN + 6);
  pen.textAlign = "left";
  pen.fillText(say("targetSide"), MARGIN, top - 8);
  rows.forEach((text, at) => rowLabel(pen, plan, text, at, at === step, at >= shown, ink));
  columns.forEach((text, at) => columnLabel(pen, plan, text, at, at === column, ink));
}

/** One pixel a cell, drawn large; made once, and not when the mouse moves. */
function cells(pen, plan, trace, look, shown, dark) {
  const { rows, columns, cell, left, top } = plan;
  const key = [shown, dark].join();
  if (look.drawn?.key !== key) look.drawn = { key, small: pixels(plan, trace, look, shown, dark) };
  pen.imageSmoothingEnabled = false;
  pen.drawImage(look.drawn.small, left, top, cell * columns.length, cell * rows.length);
}

function pixels(plan, trace, look, shown, dark) {
  const { rows, columns } = plan;
  const image = new ImageData(columns.length, rows.length);
  const scale = Array.from({ length: 101 }, (_, share) => heatParts(share / 100, dark));
  for (let row = 0; row < rows.length; row += 1) {
    const weights = row < shown ? weightsAt(trace, look, row) : null;
    for (let at = 0; at < columns.length; at += 1) {
      const place = 4 * (row * columns.length + (plan.back ? columns.length - 1 - at : at));
      const colour = scale[weights ? Math.round(100 * Math.min(1, weights[at])) : 0];
      for (let part = 0; part < 3; part += 1) image.data[place + part] = colour[part];
      image.data[place + 3] = 255;
    }
  }
  const small = document.createElement("canvas");
  small.width = columns.length;
  small.height = rows.length;
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

function grid(pen, plan, ink) {
  const { rows, columns, cell, left, top } = plan;
  pen.strokeStyle = ink.grid;
  pen.lineWidth = 0.5;
  pen.beginPath();
  for (let at = 0; at <= columns.length; at += 1) {
    pen.moveTo(left + at * cell, top);
    pen.lineTo(left + at * cell, top + rows.length * cell);
  }
  for (let at = 0; at <= rows.length; at += 1) {
    pen.moveTo(left, top + at * cell);
    pen.lineTo(left + columns.length * cell, top + at * cell);
  }
  pen.stroke();
}

function rowLabel(pen, plan, text, at, lit, hidden, ink) {
  if (hidden || (!lit && at % plan.every)) return;
  const y = plan.top + (at + 0.5) * plan.cell;
  const size = lit ? Math.max(12, plan.size) : plan.size;
  pen.font = `${lit ? "bold " : ""}${size}px ${FONT}`;
  if (lit) {
    pen.fillStyle = ink.mark;
    const wide = Math.min(120, pen.measureText(text).width) + 6;
    pen.fillRect(plan.left - wide - 4, y - size / 2 - 3, wide, size + 6);
  }
  pen.fillStyle = ink.ink;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillText(text, plan.left - 7, y, 118);
}

function columnLabel(pen, plan, text, at, lit, ink) {
  if (!lit && at % plan.every) return;
  const size = lit ? Math.max(12, plan.size) : plan.size;
  pen.save();
  pen.translate(plan.x(at) + plan.cell / 2, plan.top - 6);
  pen.font = `${lit ? "bold " : ""}${size}px ${FONT}`;
  if (!plan.upright) pen.rotate(-Math.PI / 2);
  if (lit) {
    pen.fillStyle = ink.mark;
    const wide = Math.min(96, pen.measureText(text).width) + 6;
    if (plan.upright) pen.fillRect(-wide / 2, -size - 3, wide, size + 6);
    else pen.fillRect(-3, -size / 2 - 3, wide, size + 6);
  }
  pen.fillStyle = ink.ink;
  pen.textAlign = plan.upright ? "center" : "left";
  pen.textBaseline = plan.upright ? "alphabetic" : "middle";
  pen.fillText(text, 0, plan.upright ? -1 : 0, plan.upright ? Math.max(plan.cell, 26) : 96);
  pen.restore();
}

/** The same as SVG, for a file. */
export function matrixPicture(trace, look, step, room) {
  const plan = layout(trace, room);
  const ink = inks();
  const { rows, columns, cell, left, top } = plan;
  const nodes = [
    shape("rect", { x: left, y: top, width: cell * columns.length, height: cell * rows.length, fill: heat(0), stroke: ink.grid }),
  ];
  rows.forEach((_, row) => {
    weightsAt(trace, look, row).forEach((weight, at) => {
      if (weight < 0.005) return;
      const place = { x: plan.x(at), y: top + row * cell, width: cell, height: cell };
      nodes.push(
        shape(
          "rect",
          { ...place, fill: heat(weight) },
          shape("title", {}, `${rows[row]} ← ${columns[at]}: ${weight.toFixed(3)}`),
        ),
      );
    });
  });
  nodes.push(
    shape("rect", {
      x: left - 1,
      y: top + step * cell,
      width: cell * columns.length + 2,
      height: cell,
      fill: "none",
      stroke: ink.score,
      "stroke-width": 2,
    }),
  );
  const side = { fill: ink.faint, "font-size": 12 };
  nodes.push(
    words(plan.back ? plan.width - MARGIN : left, MARGIN + 10, say(plan.back ? "sourceSideBack" : "sourceSide"), {
      ...side,
      "text-anchor": plan.back ? "end" : "start",
    }),
  );
  nodes.push(words(MARGIN, top - 4, say("targetSide"), side));
  rows.forEach((text, row) => {
    if (row % plan.every) return;
    const y = top + (row + 0.5) * cell + plan.size * 0.35;
    nodes.push(
      words(left - 7, y, text, {
        "text-anchor": "end",
        "font-size": plan.size,
        fill: ink.ink,
        "font-weight": row === step ? 700 : 400,
      }),
    );
  });
  columns.forEach((text, at) => {
    if (at % plan.every) return;
    const [x, y] = [plan.x(at) + cell / 2, top - 6];
    const turned = plan.upright
      ? { "text-anchor": "middle" }
      : { transform: `rotate(-90 ${x} ${y})`, "dominant-baseline": "central" };
    nodes.push(words(x, y, text, { "font-size": plan.size, fill: ink.ink, ...turned }));
  });
  return picture(plan.width, plan.height, {}, ...nodes);
}

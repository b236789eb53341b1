// Where each source token stands in a picture: columns as wide as their labels, from the side where the text begins.

import { widthOf } from "./dom.js";
import { label, runsBack, visible } from "./labels.js";

const NARROWEST = 26;
const PAD = 10;

const known = new WeakMap(); // trace -> what was worked out for it last

/** Places of the source's tokens: `left`, `width`, `middle` and `text` of each, the `width` of the
 * picture, where they `start` and `end` in it, and whether they run `back`. */
export function columnsOf(trace, room) {
  const last = known.get(trace);
  if (last?.room === room) return last.columns;
  const columns = placed(trace, room);
  known.set(trace, { room, columns });
  return columns;
}

/** The least width of the picture. */
export function leastWidth(trace) {
  return placed(trace, 0).width;
}

function placed(trace, room) {
  const tokens = trace.source.tokens;
  const texts = tokens.map((token) => label(token));
  const widths = texts.map((text) => Math.max(NARROWEST, Math.min(140, widthOf(text, 14) + 12)));
  const needed = widths.reduce((sum, width) => sum + width, 0) + 2 * PAD;
  const more = Math.max(0, Math.min(22, (room - needed) / tokens.length));
  const total = needed + more * tokens.length;
  const width = Math.max(room, total);
  const back = runsBack(trace.source.text);
  let left = (width - total) / 2 + PAD;
  const items = [];
  const order = tokens.map((_, at) => (back ? tokens.length - 1 - at : at));
  for (const at of order) {
    const wide = widths[at] + more;
    items[at] = { left, width: wide, middle: left + wide / 2, text: texts[at], whole: visible(tokens[at]) };
    left += wide;
  }
  return { items, width, back, start: (width - total) / 2 + PAD, end: (width + total) / 2 - PAD };
}

// Points in the plane and the way through them that a pointer has found so far. Knows the points of a trace.

import { inks } from "./colours.js";
import { picture, shape, words } from "./dom.js";
import { position } from "./traces.js";
import { say } from "./words.js";

const SIZE = 320;
const EDGE = 24;

export function planPicture(trace, step) {
  const ink = inks();
  const [across, up] = [0, 1].map((axis) => trace.points.map((point) => point[axis]));
  const least = [Math.min(...across), Math.min(...up)];
  const span = Math.max(Math.max(...across) - least[0], Math.max(...up) - least[1]) || 1;
  const scale = (SIZE - 2 * EDGE) / span;
  const place = (at) => [EDGE + (across[at] - least[0]) * scale, SIZE - EDGE - (up[at] - least[1]) * scale];
  const way = trace.target.ids
    .slice(0, step + 1)
    .map(position)
    .filter((at) => at !== null);
  const nodes = way.slice(1).map((to, at) => {
    const [[x1, y1], [x2, y2]] = [place(way[at]), place(to)];
    const last = at === way.length - 2;
    return shape("path", {
      d: `M${x1} ${y1} L${x2} ${y2}`,
      stroke: ink.copy,
      "stroke-width": last ? 3 : 1.8,
      opacity: last ? 1 : 0.6,
    });
  });
  trace.points.forEach((_, at) => {
    const [x, y] = place(at);
    const now = way.at(-1) === at;
    nodes.push(shape("circle", { cx: x, cy: y, r: now ? 7 : 4.5, fill: way.includes(at) ? ink.copy : ink.faint }));
    nodes.push(words(x + 8, y - 6, String(at), { "font-size": 11, fill: ink.ink, "font-weight": now ? 700 : 400 }));
  });
  return picture(SIZE, SIZE, { role: "img", "aria-label": `${say("points")}: ${way.join(" ")}` }, ...nodes);
}

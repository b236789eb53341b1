// Answers side by side, and one place in them: asking, showing, stepping, playing, steering. Knows panels and the service.

import { keep, read } from "./address.js";
import { byId } from "./dom.js";
import { Panel } from "./panel.js";
import { explore } from "./service.js";
import { findLook, isHere } from "./traces.js";
import { say } from "./words.js";

export const TICK = 650; // milliseconds a symbol, when played
const REVEAL = 110; // when an answer appears

/** What the reader looks at; the address tells it. */
export const view = read(location.hash);
/** What panels tell of; `steers` where there is a service to search again. */
export const page = { steers: false, choose, steer, release, want };
export const panels = [];
let running = null; // of the question that is being asked
let timer = null;

export function longest() {
  return panels.reduce((most, panel) => Math.max(most, panel.length), 0);
}

export function settle(state) {
  document.body.dataset.state = state;
}

/** Goes to a step in all panels; `shown` symbols have appeared. */
export function place(step, shown) {
  view.step = Math.max(0, Math.min(step, longest() - 1));
  for (const panel of panels) panel.go(view.step, shown);
  const slider = byId("step");
  slider.max = String(Math.max(1, longest()));
  slider.value = String(view.step + 1);
  const [now] = panels.filter((panel) => panel.length);
  byId("where").textContent = say("step", view.step + 1, longest());
  slider.setAttribute("aria-valuetext", now ? now.said() : "");
  keep(view);
}

export function choose(step) {
  stop();
  place(step, undefined);
  byId("said").textContent = panels
    .filter((panel) => panel.length)
    .map((panel) => panel.said())
    .join(" · ");
}

export function stop() {
  clearInterval(timer);
  timer = null;
  byId("play").textContent = "▶";
  byId("play").setAttribute("aria-label", say("play"));
  if (document.body.dataset.state === "playing") settle("ready");
}

export function isPlaying() {
  return timer !== null;
}

/** From `step` on a symbol a tick; those that are not reached yet are hidden where they `appear`. What draws slowly skips some. */
export function play(step, tick, appear) {
  stop();
  settle("playing");
  byId("play").textContent = "❚❚";
  byId("play").setAttribute("aria-label", say("pause"));
  const began = performance.now();
  const next = () => {
    const at = Math.min(longest() - 1, step + Math.floor((performance.now() - began) / tick));
    if (at !== view.step || at === step) place(at, appear ? at + 1 : undefined);
    if (at >= longest() - 1) stop();
  };
  timer = setInterval(next, Math.max(16, tick));
  next();
}

export function message(text) {
  byId("message").textContent = text;
}

function question(index) {
  const name = index === 0 ? view.model : view.beside;
  const asked = { source: view.source, model: name, tree: view.tree };
  if (view.target) asked.target = view.target;
  else if (view.prefixes[index].length) asked.prefix = view.prefixes[index];
  return asked;
}

/** Asks what `view` says, of the panels named, and shows it from `step` on; without one the output appears from its beginning. */
export async function ask(indices, step = null) {
  if (!view.source) {
    message(say("noSource"));
    return;
  }
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  stop();
  message("");
  settle("working");
  byId("panels").setAttribute("aria-busy", "true");
  const waiting = setTimeout(() => message(say("working")), 250);
  try {
    const found = await Promise.all(indices.map((index) => explore(question(index), byId("key").value, signal)));
    if (signal.aborted) return;
    message("");
    show(indices, found, step);
  } catch (error) {
    if (signal.aborted) return;
    message(error.message);
    settle("failed");
  } finally {
    clearTimeout(waiting);
    if (!signal.aborted) byId("panels").removeAttribute("aria-busy");
  }
}

export function show(indices, traces, step) {
  const wanted = view.beside ? 2 : 1;
  while (panels.length > wanted) panels.pop().node.remove();
  while (panels.length < wanted) panels.push(new Panel(page));
  byId("panels").replaceChildren(...panels.map((panel) => panel.node));
  byId("panels").classList.toggle("two", wanted === 2);
  byId("empty").hidden = true;
  indices.forEach((index, at) => {
    panels[index].tree = view.tree;
    panels[index].set(traces[at], step ?? 0);
  });
  byId("controls").hidden = longest() === 0;
  settle("ready");
  if (longest() === 0) return;
  if (view.look) lookAt(panels[0], view.look);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (step !== null) place(step, undefined);
  else if (still) place(longest() - 1, undefined);
  else play(0, Math.min(REVEAL, 3000 / longest()), true);
}

/** A candidate instead of what was said: what stands before it is kept, and the rest is searched again. */
function steer(panel, candidate) {
  const index = panels.indexOf(panel);
  view.target = byId("target").value = "";
  view.prefixes[index] = [...panel.trace.target.ids.slice(0, panel.step), candidate.id];
  ask([index], panel.step);
}

function release(panel) {
  view.prefixes[panels.indexOf(panel)] = [];
  ask([panels.indexOf(panel)], view.step);
}

function lookAt(panel, [layer, head]) {
  const at = findLook(panel.trace, layer, head);
  if (at < 0 || at === panel.look) return;
  if (!isHere(panel.trace.looks[at])) {
    fetchLook(panel, layer, head);
    return;
  }
  panel.look = at;
  panel.build();
}

/** The numbers of a head that was not sent: for the same output, so that nothing else changes. */
async function fetchLook(panel, layer, head) {
  const { target } = panel.trace;
  const asked = { ...question(panels.indexOf(panel)), look: [layer, head], tree: false };
  if (!target.given) asked.prefix = target.ids;
  const [{ step }, { beam }] = [panel, panel.trace];
  try {
    const trace = await explore(asked, byId("key").value);
    panel.look = null;
    panel.set({ ...trace, beam, target: { ...trace.target, forced: target.forced } }, step);
    place(step, undefined);
  } catch (error) {
    message(error.message);
  }
}

function want(panel, layer, head) {
  if (panel === panels[0]) view.look = [layer, head];
  lookAt(panel, [layer, head]);
  panel.node.querySelector("select.layer")?.focus();
  place(view.step, undefined);
}

/** Everything anew, in another language or other colours, with or without trees. */
export function redraw() {
  for (const panel of panels) {
    panel.tree = view.tree;
    if (panel.trace) panel.build();
  }
  if (longest()) place(view.step ?? 0, undefined);
  else keep(view);
}

// The page: a question, its answers side by side, and one place in them. In a file of its own the answers are there already.

import { keep, read } from "./address.js";
import { byId, element } from "./dom.js";
import { saveJson, savePng, saveSvg } from "./files.js";
import { Panel } from "./panel.js";
import { explore, offer } from "./service.js";
import { findLook, isHere } from "./traces.js";
import { languages, say, speak } from "./words.js";

const TICK = 650; // milliseconds a symbol, when played
const REVEAL = 110; // when an answer appears

const view = read(location.hash);
const page = { steers: false, choose, steer, release, want };
let panels = [];
let running = null; // of the question that is being asked
let timer = null;

// ---- where we are -----------------------------------------------------------------------------------------------------------

function longest() {
  return panels.reduce((most, panel) => Math.max(most, panel.length), 0);
}

function settle(state) {
  document.body.dataset.state = state;
}

/** Goes to a step in all panels; `shown` symbols have appeared. */
function place(step, shown) {
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

function choose(step) {
  stop();
  place(step, undefined);
  byId("said").textContent = panels.filter((panel) => panel.length).map((panel) => panel.said()).join(" · ");
}

function stop() {
  clearInterval(timer);
  timer = null;
  byId("play").textContent = "▶";
  byId("play").setAttribute("aria-label", say("play"));
  if (document.body.dataset.state === "playing") settle("ready");
}

/** From `step` on a symbol a tick; those that are not reached yet are hidden where they `appear`. What draws slowly skips some. */
function play(step, tick, appear) {
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

// ---- questions and answers --------------------------------------------------------------------------------------------------

function message(text) {
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
async function ask(indices, step = null) {
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

function show(indices, traces, step) {
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

// ---- the controls -----------------------------------------------------------------------------------------------------------

function dress() {
  speak(view.language || "en");
  byId("language").value = document.documentElement.lang;
  document.documentElement.dataset.theme = view.theme || "auto";
  byId("theme").value = document.documentElement.dataset.theme;
  const [none] = byId("beside").options;
  if (none) none.textContent = say("none");
  document.title = view.source ? `${view.source} – eyeline` : "eyeline";
}

function redress() {
  dress();
  for (const panel of panels) if (panel.trace) panel.build();
  if (longest()) place(view.step ?? 0, undefined);
  else keep(view);
}

function listen() {
  const on = (name, event, handle) => byId(name).addEventListener(event, handle);
  on("language", "change", () => {
    view.language = byId("language").value;
    redress();
  });
  on("theme", "change", () => {
    view.theme = byId("theme").value;
    redress();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redress);
  on("question", "submit", (event) => {
    event.preventDefault();
    const { source, target, model, beside } = Object.fromEntries(["source", "target", "model", "beside"].map((name) => [name, byId(name).value]));
    Object.assign(view, { source, target, model, beside, prefixes: [[], []], step: null, look: null });
    dress();
    keep(view);
    ask(beside ? [0, 1] : [0]);
  });
  on("step", "input", () => choose(Number(byId("step").value) - 1));
  on("first", "click", () => choose(0));
  on("previous", "click", () => choose(view.step - 1));
  on("next", "click", () => choose(view.step + 1));
  on("play", "click", () => (timer ? stop() : play(view.step >= longest() - 1 ? 0 : view.step, TICK, false)));
  on("tree", "change", () => {
    view.tree = byId("tree").checked;
    keep(view);
    if (page.steers && view.tree) ask(panels.map((_, index) => index), view.step);
    else redrawTrees();
  });
  on("svg", "click", () => saveSvg(panels));
  on("png", "click", () => savePng(panels));
  on("json", "click", () => saveJson(panels));
  on("link", "click", copyLink);
  document.addEventListener("keydown", keys);
}

function redrawTrees() {
  for (const panel of panels) {
    panel.tree = view.tree;
    panel.build();
  }
  place(view.step, undefined);
}

async function copyLink() {
  keep(view);
  try {
    await navigator.clipboard.writeText(location.href);
    message(say("copied"));
  } catch {
    message(location.href);
  }
}

/** Arrow keys go from step to step, wherever nothing else has a use for them. */
function keys(event) {
  if (!longest() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName)) return;
  const moves = { ArrowLeft: view.step - 1, ArrowUp: view.step - 1, ArrowRight: view.step + 1, ArrowDown: view.step + 1, Home: 0, End: longest() - 1 };
  if (!(event.key in moves)) return;
  event.preventDefault();
  choose(moves[event.key]);
}

function choices(names) {
  byId("model").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  byId("beside").replaceChildren(element("option", { value: "" }, say("none")), ...names.map((name) => element("option", { value: name }, name)));
  byId("model").value = names.includes(view.model) ? view.model : names[0];
  byId("beside").value = names.includes(view.beside) ? view.beside : "";
  Object.assign(view, { model: byId("model").value, beside: byId("beside").value });
}

// ---- the beginning ----------------------------------------------------------------------------------------------------------

async function begin() {
  if (!languages().includes(view.language)) view.language = navigator.language?.startsWith("ko") ? "ko" : "en";
  listen();
  dress();
  byId("tree").checked = view.tree;
  const own = byId("traces");
  if (own) {
    const { traces } = JSON.parse(own.textContent);
    byId("question").hidden = true;
    view.source = traces[0].source.text;
    view.beside = traces.length > 1 ? traces[1].name : "";
    byId("tree-label").hidden = traces.every((trace) => trace.beam === null);
    dress();
    show(traces.map((_, at) => at), traces, view.step ?? 0);
    return;
  }
  page.steers = true;
  view.source ||= new URLSearchParams(location.search).get("text") ?? "";
  byId("source").value = view.source;
  byId("target").value = view.target;
  byId("source").focus();
  settle("empty");
  try {
    const known = await offer();
    choices(known.models.map((model) => model.name));
    byId("key-label").hidden = !known.wants_key;
  } catch (error) {
    message(error.message);
    settle("failed");
    return;
  }
  if (view.source) ask(view.beside ? [0, 1] : [0], view.step);
}

begin();

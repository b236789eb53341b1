// The page: its controls, and how it begins. In a file of its own the answers are there already.

import {
  ask,
  choose,
  isPlaying,
  longest,
  message,
  page,
  panels,
  play,
  redraw,
  settle,
  show,
  stop,
  TICK,
  view,
} from "./answers.js";
import { keep } from "./address.js";
import { byId, element } from "./dom.js";
import { saveJson, savePng, saveSvg } from "./files.js";
import { offer } from "./service.js";
import { languages, say, speak } from "./words.js";

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
  redraw();
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
    const { source, target, model, beside } = Object.fromEntries(
      ["source", "target", "model", "beside"].map((name) => [name, byId(name).value]),
    );
    Object.assign(view, { source, target, model, beside, prefixes: [[], []], step: null, look: null });
    dress();
    keep(view);
    ask(beside ? [0, 1] : [0]);
  });
  on("step", "input", () => choose(Number(byId("step").value) - 1));
  on("first", "click", () => choose(0));
  on("previous", "click", () => choose(view.step - 1));
  on("next", "click", () => choose(view.step + 1));
  on("play", "click", () => (isPlaying() ? stop() : play(view.step >= longest() - 1 ? 0 : view.step, TICK, false)));
  on("tree", "change", () => {
    view.tree = byId("tree").checked;
    keep(view);
    if (page.steers && view.tree)
      ask(
        panels.map((_, index) => index),
        view.step,
      );
    else redraw();
  });
  on("svg", "click", () => saveSvg(panels));
  on("png", "click", () => savePng(panels));
  on("json", "click", () => saveJson(panels));
  on("link", "click", copyLink);
  document.addEventListener("keydown", keys);
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
  const moves = {
    ArrowLeft: view.step - 1,
    ArrowUp: view.step - 1,
    ArrowRight: view.step + 1,
    ArrowDown: view.step + 1,
    Home: 0,
    End: longest() - 1,
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  choose(moves[event.key]);
}

/** What a source of numbers looks like, where the model reads such; `numbers` is how many each element has, 0 for text. */
function likeness(numbers) {
  if (!numbers) return "";
  const element = (first) => Array.from({ length: numbers }, (_, at) => (first + 3 * at) / 10);
  return JSON.stringify([1, 5, 2].map((first) => element(first)));
}

function choices(models) {
  const names = models.map((model) => model.name);
  byId("model").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  byId("beside").replaceChildren(
    element("option", { value: "" }, say("none")),
    ...names.map((name) => element("option", { value: name }, name)),
  );
  byId("model").value = names.includes(view.model) ? view.model : names[0];
  byId("beside").value = names.includes(view.beside) ? view.beside : "";
  Object.assign(view, { model: byId("model").value, beside: byId("beside").value });
  const hint = () => {
    byId("source").placeholder = likeness(models[byId("model").selectedIndex].numbers);
  };
  byId("model").addEventListener("change", hint);
  hint();
}

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
    show(
      traces.map((_, at) => at),
      traces,
      view.step ?? 0,
    );
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
    choices(known.models);
    byId("key-label").hidden = !known.wants_key;
  } catch (error) {
    message(error.message);
    settle("failed");
    return;
  }
  if (view.source) ask(view.beside ? [0, 1] : [0], view.step);
}

begin();

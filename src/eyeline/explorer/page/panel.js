// One model's answer to a source: its output, the picture of a step, the matrix, the heads to choose from. Knows a trace and where
// in it we are; what is asked of the service stands in main.js.

import { beamPicture, beamTree } from "./beam_tree.js";
import { leastWidth } from "./columns.js";
import { element } from "./dom.js";
import { headPicker } from "./heads.js";
import { runsBack } from "./labels.js";
import { matrix, matrixPicture } from "./matrix.js";
import { planPicture } from "./plan.js";
import { inWords, story } from "./story.js";
import { stepTable } from "./table.js";
import { isHere, outputLabel } from "./traces.js";
import { number, say } from "./words.js";

const MANY = 60; // symbols, of which some may be out of sight

export class Panel {
  /** `page` is told what the reader does: choose(step), steer(panel, candidate), release(panel), want(panel, layer, head). */
  constructor(page) {
    this.page = page;
    this.trace = null;
    this.step = 0;
    this.shown = 0;
    this.look = null;
    this.column = null;
    this.tree = false;
    this.node = element("article", { class: "panel card" });
    this.lit = () => {};
    this.drawing = null;
    this.seen = new ResizeObserver(() => this.node.clientWidth !== this.drawnFor && this.length && this.measure() && this.draw());
    this.seen.observe(this.node);
  }

  /** Shows a trace from `step` on, of which so many symbols have appeared. */
  set(trace, step = 0, shown = trace.steps.length) {
    const before = this.look === null ? null : this.trace?.looks[this.look];
    this.trace = trace;
    this.look = trace.shown;
    const same = before ? trace.looks.findIndex((look) => look.layer === before.layer && look.head === before.head) : -1;
    if (same >= 0 && isHere(trace.looks[same])) this.look = same;
    this.column = null;
    this.shown = shown;
    this.step = Math.max(0, Math.min(step, trace.steps.length - 1));
    this.build();
  }

  get length() {
    return this.trace?.steps.length ?? 0;
  }

  get chosen() {
    return this.look === null ? null : this.trace.looks[this.look];
  }

  /** Everything anew: for another trace, another look or another language. */
  build() {
    const trace = this.trace;
    const name = element("h2", {}, element("bdi", {}, trace.name), element("small", {}, ` ${trace.model.architecture}`));
    this.output = element("ol", {
      class: "output",
      dir: runsBack(trace.target.text) ? "rtl" : "ltr",
      "aria-label": say("output"),
    });
    this.facts = element("p", { class: "note" });
    this.node.replaceChildren(name);
    if (!trace.steps.length) {
      this.node.append(element("p", { class: "empty" }, say("blank")));
      return;
    }
    this.picture = element("div", { class: "scroll story", tabindex: 0, role: "region", "aria-label": say("symbol") });
    this.node.append(this.output, this.facts);
    this.buildFacts();
    if (this.look === null) this.node.append(element("p", { class: "honest" }, say("noAttention")));
    this.node.append(...headPicker(trace, this.look, (layer, head) => this.page.want(this, layer, head)));
    this.plan = trace.points ? element("figure", {}, element("figcaption", {}, say("points"))) : null;
    this.drawing =
      this.chosen &&
      matrix(trace, this.chosen, { choose: (step) => this.page.choose(step), light: (column) => this.light(column) });
    const beside = this.drawing ? [element("h3", {}, say("matrix")), this.drawing.node] : [];
    this.body = element("div", { class: "body" }, element("div", {}, this.picture), element("div", {}, ...beside, this.plan));
    this.node.append(this.body);
    if (this.tree) this.node.append(element("h3", {}, say("treeTitle")), beamTree(trace));
    this.table = element("details", {}, element("summary", {}, say("table")));
    this.table.addEventListener("toggle", () => this.drawTable());
    this.node.append(this.table);
    this.buildOutput();
    this.measure();
    this.draw();
  }

  /** How much room there is. Asked once and not at every step: the browser would lay out everything to answer. */
  measure() {
    this.drawnFor = this.node.clientWidth;
    this.body.classList.toggle("stacked", this.drawnFor < 940 || leastWidth(this.trace) > 0.6 * this.drawnFor);
    const wide = (node) => Math.max(240, node.clientWidth);
    this.room = { story: wide(this.picture), matrix: this.drawing ? wide(this.drawing.node) : 0 };
    this.wide = leastWidth(this.trace) > this.room.story;
    return true;
  }

  buildOutput() {
    const { target } = this.trace;
    this.symbols = target.tokens.map((token, at) => {
      const text = outputLabel(this.trace, target.ids[at], token, 200);
      const held = at < target.forced && !target.given;
      const button = element(
        "button",
        { type: "button", class: held ? "held" : null, title: held ? `${text} (${say("forced")})` : text },
        outputLabel(this.trace, target.ids[at], token),
      );
      button.addEventListener("click", () => this.page.choose(at));
      button.addEventListener("pointerenter", (event) => event.buttons && this.page.choose(at));
      return button;
    });
    this.output.replaceChildren(...this.symbols.map((button) => element("li", {}, button)));
  }

  buildFacts() {
    const { target } = this.trace;
    const facts = [say("log", number(target.score))];
    if (!target.finished) facts.push(say("unfinished"));
    this.facts.replaceChildren(element("bdi", { class: "text" }, target.text), ` · ${facts.join(" · ")}`);
    if (target.forced > 0 && !target.given && this.page.steers) {
      const button = element("button", { type: "button", class: "release" }, say("released"));
      button.addEventListener("click", () => this.page.release(this));
      this.facts.append(" ", button);
    }
  }

  /** The step as it now is. */
  draw() {
    const trace = this.trace;
    if (!trace.steps.length) return;
    this.symbols.forEach((button, at) => {
      button.hidden = at >= this.shown;
      button.classList.toggle("now", at === this.step);
      if (at === this.step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    const now = this.symbols[this.step];
    if (this.length > MANY) this.output.scrollTop = now.offsetTop - 60;
    const focused = this.picture.contains(document.activeElement) && document.activeElement !== this.picture;
    const steer = this.page.steers ? (candidate) => this.page.steer(this, candidate) : null;
    const drawn = story(trace, this.chosen, this.step, { room: this.room.story, steer, light: (column) => this.light(column) });
    this.picture.replaceChildren(drawn.svg);
    if (this.wide) this.picture.scrollLeft = drawn.centre - this.room.story / 2;
    if (focused) this.picture.querySelector(".candidate")?.focus();
    this.lit = drawn.lit;
    this.lit(this.column);
    if (this.plan) this.plan.replaceChildren(this.plan.firstChild, planPicture(trace, this.step));
    this.drawMatrix();
    this.drawTable();
  }

  drawMatrix() {
    this.drawing?.draw(this.step, this.column, this.room.matrix, this.shown);
  }

  drawTable() {
    if (!this.table.open) return;
    this.table.replaceChildren(this.table.firstChild, stepTable(this.trace, this.chosen, this.step));
  }

  /** Lights up a source token, in the picture and in the matrix. */
  light(column) {
    if (column === this.column) return;
    this.column = column;
    this.lit(column);
    this.drawMatrix();
  }

  go(step, shown = this.length) {
    this.step = Math.max(0, Math.min(step, this.length - 1));
    this.shown = shown;
    this.draw();
  }

  said() {
    return inWords(this.trace, this.chosen, this.step);
  }

  /** What is shown, as pictures for a file. */
  pictures() {
    if (!this.length) return [];
    const pictures = [story(this.trace, this.chosen, this.step, { room: this.room.story, steer: null, light: () => {} }).svg];
    if (this.plan) pictures.push(planPicture(this.trace, this.step));
    if (this.chosen) pictures.push(matrixPicture(this.trace, this.chosen, this.step, this.room.matrix));
    if (this.tree && this.trace.beam) pictures.push(beamPicture(this.trace));
    return pictures;
  }
}

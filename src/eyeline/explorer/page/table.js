// A step as tables, for those who read rather than look. Knows a trace and a step.

import { element } from "./dom.js";
import { visible } from "./labels.js";
import { coverageAt, outputLabel, scoresAt, weightsAt } from "./traces.js";
import { number, say } from "./words.js";

function table(caption, heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", dir: "auto" }, row[0]),
      ...row.slice(1).map((text) => element("td", {}, text)),
    ),
  );
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body)),
  );
}

export function stepTable(trace, look, step) {
  const now = trace.steps[step];
  const caption = say("stepTitle", step + 1, trace.target.tokens[step]);
  const tables = [
    table(
      caption,
      [say("candidate"), say("probability")],
      now.candidates.map((one) => [outputLabel(trace, one.id, one.token, 200), number(one.p, 4)]),
    ),
  ];
  if (look !== null) {
    const scores = scoresAt(trace, look, step);
    const before = coverageAt(trace, step);
    const copied = now.copied ? new Map(now.copied) : null;
    const heads = [say("token"), scores && say("score"), say("weight"), before && say("sum"), copied && say("copiedMass")];
    const rows = weightsAt(trace, look, step).map((weight, at) => [
      visible(trace.source.tokens[at]),
      scores && number(scores[at], 3),
      number(weight, 4),
      before && number(before[at], 3),
      copied && number(copied.get(at) ?? 0, 4),
    ]);
    tables.push(
      table(
        say("weight"),
        heads.filter((text) => text),
        rows.map((row) => row.filter((text) => text !== null)),
      ),
    );
  }
  return element("div", {}, ...tables);
}

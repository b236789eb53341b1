// What a trace says of a step. Knows the value that the service sends, and no picture.

import { label } from "./labels.js";

const WHOLE = 10000;

export function sourceLength(trace) {
  return trace.source.tokens.length;
}

/** Whether the numbers of a look are here; of very many heads only the one shown is. */
export function isHere(look) {
  return look.weights !== undefined;
}

function row(flat, step, length) {
  return flat.slice(step * length, (step + 1) * length);
}

export function weightsAt(trace, look, step) {
  return row(look.weights, step, sourceLength(trace)).map((weight) => weight / WHOLE);
}

/** Scores before the softmax, null where the model may not look; null for a mean of heads. */
export function scoresAt(trace, look, step) {
  return look.scores ? row(look.scores, step, sourceLength(trace)) : null;
}

export function coverageAt(trace, step) {
  return trace.coverage ? row(trace.coverage.before, step, sourceLength(trace)) : null;
}

/** The least and the greatest of numbers, zero among them. */
export function rangeOf(numbers) {
  let [low, high] = [0, 0];
  for (const number of numbers ?? []) {
    if (number !== null && number < low) low = number;
    if (number !== null && number > high) high = number;
  }
  return [low, high];
}

/** The weighted sum of the shown numbers of the source's vectors. */
export function contextAt(trace, look, step) {
  const weights = weightsAt(trace, look, step);
  return look.parts[0].map((_, part) => weights.reduce((sum, weight, at) => sum + weight * look.parts[at][part], 0));
}

export function strongest(weights) {
  return weights.reduce((best, weight, at) => (weight > weights[best] ? at : best), 0);
}

/** The source position that an output id of a pointer points at; null for the end. */
export function position(id) {
  return id >= 4 ? id - 4 : null;
}

/** How an output token is written: of a pointer with what stands at the position. */
export function outputLabel(trace, id, token, longest = 14) {
  const place = trace.model.pointing ? position(id) : null;
  return place === null ? label(token, longest) : `${token} · ${label(trace.source.tokens[place] ?? "", longest)}`;
}

/** Look of a layer and head, among a trace's. */
export function findLook(trace, layer, head) {
  return trace.looks.findIndex((look) => look.layer === layer && look.head === head);
}

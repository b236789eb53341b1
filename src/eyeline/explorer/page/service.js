// What the page asks the service. A refusal is an Error whose message is the service's own line.

import { say } from "./words.js";

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error(say("offline"));
  }
  let value = null;
  try {
    value = await response.json();
  } catch {
    value = null;
  }
  if (!response.ok || value === null) throw new Error(value?.error ?? `${response.status} ${response.statusText}`);
  return value;
}

/** The models by name, in their order. */
export async function models() {
  return (await answer("explore", {})).models;
}

/** A trace, as `eyeline.explorer.trace` makes it. */
export async function explore(question, signal) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question), signal };
  return answer("explore", options);
}

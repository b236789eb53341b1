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

/** The models by name, in their order, and whether they want a key. */
export async function offer() {
  return answer("explore/models", {});
}

/** A trace, as `eyeline.explorer.trace` makes it. */
export async function explore(question, key, signal) {
  const headers = { "Content-Type": "application/json", ...(key ? { "X-API-Key": key } : {}) };
  return answer("explore", { method: "POST", headers, body: JSON.stringify(question), signal });
}

// The view as the part of the address behind #, so that a link restores it. Knows strings and numbers.

const THEMES = ["auto", "light", "dark"];

function ids(text) {
  return text ? text.split(".").map(Number).filter(Number.isInteger) : [];
}

/** The view that an address tells; what is not there is empty. */
export function read(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const look = (given.get("look") ?? "").split(".").map((part) => (part === "" ? null : Number(part)));
  const step = Number(given.get("step") ?? NaN);
  return {
    source: given.get("source") ?? "",
    target: given.get("target") ?? "",
    model: given.get("model") ?? "",
    beside: given.get("beside") ?? "",
    prefixes: [ids(given.get("prefix")), ids(given.get("other"))],
    step: Number.isInteger(step) ? step - 1 : null,
    look: look.length === 2 && look.every((part) => part === null || Number.isInteger(part)) ? look : null,
    tree: given.get("tree") === "1",
    language: given.get("language") ?? "",
    theme: THEMES.includes(given.get("theme")) ? given.get("theme") : "auto",
  };
}

export function written(view) {
  const given = new URLSearchParams();
  const put = (name, value) => value && given.set(name, value);
  put("source", view.source);
  put("target", view.target);
  put("model", view.model);
  put("beside", view.beside);
  put("prefix", view.prefixes[0].join("."));
  put("other", view.prefixes[1].join("."));
  put("step", view.step === null ? "" : String(view.step + 1));
  put("look", view.look ? view.look.map((part) => part ?? "").join(".") : "");
  put("tree", view.tree ? "1" : "");
  put("language", view.language);
  put("theme", view.theme === "auto" ? "" : view.theme);
  return `#${given}`;
}

/** Puts the view into the address; a frame without one of its own goes without. */
export function keep(view) {
  try {
    history.replaceState(null, "", written(view));
  } catch {
    // a notebook's frame has no address
  }
}

// The colours of the pictures: those of the page's style, and the scales made of them. Twice the weight looks twice as strong.

// Equal steps of lightness, from the ground to the strongest.
const LIGHT = ["#f5fafb", "#b8e4f1", "#7fcae7", "#49b0dc", "#0294cd", "#0d76b1", "#075b96", "#184075", "#1d274e"];
const DARK = ["#10141a", "#15283d", "#174060", "#165a83", "#1a76a6", "#2a93c6", "#4fb2df", "#88d0ef", "#d8f3ff"];

function mixed(from, to, share) {
  const parts = [1, 3, 5].map((at) => {
    const [a, b] = [from, to].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * share);
  });
  return parts;
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** Red, green and blue of a weight in 0…1. */
export function heatParts(weight, dark = isDark()) {
  const scale = dark ? DARK : LIGHT;
  const place = Math.max(0, Math.min(1, weight)) * (scale.length - 1);
  const below = Math.min(Math.floor(place), scale.length - 2);
  return mixed(scale[below], scale[below + 1], place - below);
}

export function heat(weight, dark = isDark()) {
  return `rgb(${heatParts(weight, dark).join(",")})`;
}

/** The colour of a number in -1…1: one side of the scale below zero, the other above. */
export function signed(value, ink) {
  const share = Math.min(1, Math.abs(value));
  return `rgb(${mixed(ink.ground, value < 0 ? ink.below : ink.above, share).join(",")})`;
}

/** The page's own colours by name, as they now are. */
export function inks() {
  const style = getComputedStyle(document.documentElement);
  const names = [
    "bg",
    "card",
    "ink",
    "faint",
    "grid",
    "shade",
    "score",
    "weight",
    "coverage",
    "copy",
    "below",
    "above",
    "ground",
    "mark",
  ];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

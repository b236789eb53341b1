// How a token is written so that all of it can be seen, and which way a text runs.

const NAMES = {
  "\t": "TAB",
  "\n": "LF",
  "\r": "CR",
  "\u00a0": "NBSP",
  "\u00ad": "SHY",
  "\u200b": "ZWSP",
  "\u200c": "ZWNJ",
  "\u200d": "ZWJ",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u2060": "WJ",
  "\u3000": "WIDE BLANK",
  "\ufeff": "BOM",
};
const HIDDEN = /^[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}]$/u;
const JOINERS = "\u200c\u200d";
const STRONG = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]|(\p{L})/u;
const letters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The letters that a reader sees, marks and joined parts together. */
export function graphemes(text) {
  return Array.from(letters.segment(text), (part) => part.segment);
}

/** The token with ␣ for a blank, ⟨RLM⟩ for what leaves no ink, and a dotted circle below a mark that has nothing to sit on. */
export function visible(token) {
  if (token === "") return "⟨⟩";
  const characters = Array.from(token);
  return characters
    .map((character, at) => {
      const between = at > 0 && at < characters.length - 1;
      if (character === " ") return "␣";
      if (JOINERS.includes(character) && between) return character;
      if (HIDDEN.test(character)) {
        return `⟨${NAMES[character] ?? `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`}⟩`;
      }
      return /^\p{M}$/u.test(character) && at === 0 ? `◌${character}` : character;
    })
    .join("");
}

/** At most so many letters; where there are more the last is an ellipsis. */
export function shortened(text, longest) {
  const parts = graphemes(text);
  return parts.length <= longest ? text : `${parts.slice(0, longest - 1).join("")}…`;
}

export function label(token, longest = 14) {
  return shortened(visible(token), longest);
}

/** Whether a text is read from right to left: its first letter is. */
export function runsBack(text) {
  const found = STRONG.exec(text);
  return found !== null && found[1] === undefined;
}

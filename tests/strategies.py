"""Hypothesis strategies that several rooms share. Knows what inputs look like, not what is done with them."""

from __future__ import annotations

from hypothesis import strategies as st

# Characters that readers, splitters and vocabularies are known to trip over: every line separator that is none to us, blanks of
# many kinds, marks, jamo beside syllables, compatibility forms, an emoji sequence, markup, and control-token look-alikes.
ODD_CHARACTERS = (
    "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\t \u00a0\u3000\u2009\u200b\ufeff\u202f"
    "\u0301\u0323\u093f\u094d\u3131\u1112\u1161\u11ab한힣가…︰ŉﬁ🤷🏽\u200d♂\ufe0f<>/s_▁⁇\"'$\\{}|é"
)
CONTROL_LOOKALIKES = ("<s>", "</s>", "<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "<sep>", "<blank>", "[CLS]", "▁", "⁇")


def lines(max_size: int = 30, blank: bool = True) -> st.SearchStrategy[str]:
    """A line of text as a file can hold it: no LF, no NUL, no surrogates, no CR at its end."""
    characters = st.one_of(
        st.sampled_from(ODD_CHARACTERS),
        st.characters(codec="utf-8", exclude_characters="\n\0"),
        st.sampled_from("abcdef "),
    )
    parts = st.one_of(characters, st.sampled_from(CONTROL_LOOKALIKES))
    text = st.lists(parts, max_size=max_size).map("".join).map(lambda line: line.rstrip("\r"))
    return text if blank else text.filter(lambda line: bool(line.strip()))


def documents(max_lines: int = 12) -> st.SearchStrategy[list[str]]:
    """Some lines."""
    return st.lists(lines(), max_size=max_lines)

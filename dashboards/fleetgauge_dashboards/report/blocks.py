"""What a review's Markdown is made of."""

import re
from collections.abc import Iterable, Sequence

#: A table of more rows is no longer read; the rest is a number.
ROWS = 25


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Heads that end in ``>`` are of numbers. Cells are Markdown."""
    sides = ["---:" if head.endswith(">") else "---" for head in heads]
    lines = [[head.removesuffix(" >") for head in heads], sides, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(words: str) -> str:
    """What Markdown reads as these very words, in one line."""
    in_a_line = re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", words)
    return re.sub(r"([\\`*\[\]<>|&~!]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", in_a_line)


def more(left: int) -> list[str]:
    """What stands under a table that was cut."""
    return [f"And {left:,} more."] if left > 0 else []

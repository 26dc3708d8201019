"""Build Markdown tables and escape text."""

import re
from collections.abc import Iterable, Sequence

#: Rows of a table; a line below counts the rest.
MAX_ROWS = 25


def format_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells are Markdown. A heading ending in ``>`` right-aligns its column."""
    alignments = ["---:" if heading.endswith(">") else "---" for heading in headings]
    lines = [[heading.removesuffix(" >") for heading in headings], alignments, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape(text: str) -> str:
    """Return Markdown that renders as exactly the text, in one line."""
    line = re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)
    return re.sub(r"([\\`*\[\]<>|&~!]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", line)


def format_rest(count: int) -> list[str]:
    """Return the line below a table that omits so many rows."""
    return [f"And {count:,} more."] if count > 0 else []

"""The terminal of a command. Kept apart from the command line: importing rich takes a tenth of a second."""

import os
from collections.abc import Sequence

from rich.console import Console, ConsoleDimensions
from rich.measure import Measurement
from rich.table import Table

#: Columns of output that does not go to a terminal, so that nothing is folded or cut there.
_UNLIMITED = 100_000
#: What a terminal has that does not say how wide it is.
_DEFAULT_SIZE = os.terminal_size((80, 25))


class TerminalConsole(Console):
    """A console on a standard stream: as wide as its terminal, and without limit if it has none.

    Square brackets and colons in texts are no markup. With NO_COLOR nothing but text is written: neither
    colours nor other styles, and no spinner, which moves the cursor.
    """

    def __init__(self, *, stderr: bool) -> None:
        is_plain = os.environ.get("NO_COLOR", "") != ""
        super().__init__(
            stderr=stderr,
            highlight=False,
            markup=False,
            emoji=False,
            color_system=None if is_plain else "auto",
            force_terminal=False if is_plain else None,
        )

    @property  # type: ignore[misc]  # rich's can be set, too
    def size(self) -> ConsoleDimensions:
        """The size of the terminal.

        rich takes COLUMNS for the width of a pipe, a terminal of another stream for this one's, and a dumb
        terminal for 80 columns wide.
        """
        if not self.file.isatty():
            return ConsoleDimensions(_UNLIMITED, _DEFAULT_SIZE.lines)
        try:
            size = os.get_terminal_size(self.file.fileno())
        except (OSError, ValueError):
            size = _DEFAULT_SIZE
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() else 0
        return ConsoleDimensions(
            width or size.columns or _DEFAULT_SIZE.columns, size.lines or _DEFAULT_SIZE.lines
        )


#: Messages for people go to stderr; stdout is reserved for results.
console = TerminalConsole(stderr=True)


def print_table(output: Console, table: Table) -> None:
    """Print a table whose cells are folded between words; or each row as lines where words do not fit."""
    every_cell = [
        [*([column.header] if table.show_header else []), *column.cells] for column in table.columns
    ]
    unlimited = output.options.update(width=_UNLIMITED)
    measured = [[Measurement.get(output, unlimited, cell) for cell in cells] for cells in every_cell]
    minimums = [max((cell.minimum for cell in cells), default=0) for cells in measured]
    maximums = [max((cell.maximum for cell in cells), default=0) for cells in measured]
    frame = Measurement.get(output, unlimited, table).minimum - sum(minimums)
    if sum(minimums) + frame > output.width:
        _print_rows(output, table)
        return
    for column, width in zip(
        table.columns, share_width(output.width - frame, minimums, maximums), strict=True
    ):
        column.width = width
    output.print(table)


def share_width(available: int, minimums: Sequence[int], maximums: Sequence[int]) -> list[int]:
    """Return the width of each column: at least the minimum, and more for those that lack least.

    So numbers stay on a line, and long texts are folded. The sum is at most ``available``, which is at least
    the sum of the minimums.
    """
    widths = list(minimums)
    spare = available - sum(minimums)
    lacks = [wanted - width for wanted, width in zip(maximums, minimums, strict=True)]
    for column in sorted(range(len(widths)), key=lacks.__getitem__):
        more = min(lacks[column], spare)
        widths[column] += more
        spare -= more
    return widths


def _print_rows(output: Console, table: Table) -> None:
    """Print a line for each value, under the name of its column, and an empty one between rows."""
    for number, row in enumerate(table.rows):
        if number:
            output.print()
        for column in table.columns:
            cell = list(column.cells)[number]
            name = f"{column.header}: " if table.show_header and column.header else ""
            if name or str(cell):
                output.print(name, cell, sep="", style=row.style, soft_wrap=True)

"""The widths of tables, and the signs that an encoding lacks."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from fleetgauge_core.runtime.console import TerminalConsole, print_table, share_width
from fleetgauge_core.runtime.standard_streams import PLAIN


class Terminal(io.StringIO):
    """A terminal whose width the environment tells."""

    def isatty(self) -> bool:
        return True


def draw(columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    output = TerminalConsole(stderr=False)
    output.file = Terminal()
    table = Table("cluster", "reason", "")
    table.add_row("orders-eu", "a disk of [rack] 7 was swapped", "ok")
    table.add_row("payments-us", "", "ok")
    print_table(output, table)
    return output.file.getvalue().splitlines()


def test_a_table_is_folded_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = draw(36, monkeypatch)
    assert max(map(len, lines)) <= 36
    assert sum("swapped" in line for line in lines) == 1


def test_rows_of_a_table_whose_words_do_not_fit_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draw(24, monkeypatch) == [
        "cluster: orders-eu",
        "reason: a disk of [rack] 7 was swapped",
        "ok",
        "",
        "cluster: payments-us",
        "reason: ",
        "ok",
    ]


@given(
    columns=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 90)), min_size=1, max_size=12),
    spare=st.integers(0, 300),
)
def test_columns_share_the_width_that_words_leave(columns: list[tuple[int, int]], spare: int) -> None:
    minimums = [minimum for minimum, _ in columns]
    maximums = [minimum + more for minimum, more in columns]
    available = sum(minimums) + spare
    widths = share_width(available, minimums, maximums)
    assert all(low <= width <= high for low, width, high in zip(minimums, widths, maximums, strict=True))
    assert sum(widths) == min(available, sum(maximums))


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("ascii", "> 5 - Z\\xfcrich * \\u6771 *"), ("latin-1", "> 5 - Z\xfcrich * \\u6771 *")],
)
def test_signs_that_an_encoding_lacks_are_replaced_and_letters_escaped(encoding: str, expected: str) -> None:
    assert "→ 5 – Zürich ● 東 ⠋".encode(encoding, PLAIN).decode(encoding) == expected

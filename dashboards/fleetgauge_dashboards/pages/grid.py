"""What every big table has in common."""

from typing import Any

#: Colours of the page, so that a table follows the scheme by itself.
THEME = (
    "themeQuartz.withParams({backgroundColor: 'var(--mantine-color-body)', "
    "foregroundColor: 'var(--mantine-color-text)', borderColor: 'var(--mantine-color-default-border)', "
    "headerBackgroundColor: 'var(--mantine-color-body)', fontFamily: 'inherit', fontSize: 13, "
    "accentColor: 'var(--fg-good)', spacing: 5, wrapperBorderRadius: 8})"
)


def options(rows_drawn: int) -> dict[str, Any]:
    """As tall as its rows, of which a browser draws so many at once."""
    return {
        "theme": {"function": THEME},
        "domLayout": "autoHeight",
        "pagination": True,
        "paginationPageSize": rows_drawn,
        "paginationPageSizeSelector": False,
        "animateRows": False,
        "rowHeight": 34,
        "headerHeight": 36,
        "enableCellTextSelection": True,
        "ensureDomOrder": True,
    }

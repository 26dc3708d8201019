"""Options shared by the large tables (AG Grid)."""

from typing import Any

#: The page's CSS variables as colours, so that a table follows the colour scheme.
_THEME = (
    "themeQuartz.withParams({backgroundColor: 'var(--mantine-color-body)', "
    "foregroundColor: 'var(--mantine-color-text)', borderColor: 'var(--mantine-color-default-border)', "
    "headerBackgroundColor: 'var(--mantine-color-body)', fontFamily: 'inherit', fontSize: 13, "
    "accentColor: 'var(--fg-good)', spacing: 5, wrapperBorderRadius: 8})"
)


def build_grid_options(rows_per_page: int) -> dict[str, Any]:
    """Return AG Grid options for a table as tall as its rows, with so many rows per page."""
    return {
        "theme": {"function": _THEME},
        "domLayout": "autoHeight",
        "pagination": True,
        "paginationPageSize": rows_per_page,
        "paginationPageSizeSelector": False,
        "animateRows": False,
        "rowHeight": 34,
        "headerHeight": 36,
        "enableCellTextSelection": True,
        "ensureDomOrder": True,
    }

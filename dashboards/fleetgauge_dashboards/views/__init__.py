"""Pure functions from a reader's rows to the view models of pages: no I/O, no clock, no plotly."""

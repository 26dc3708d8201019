"""Pure: what a reader found, made into what a page says. No I/O, no clock, no plotly."""

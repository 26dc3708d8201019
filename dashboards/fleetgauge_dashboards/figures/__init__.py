"""Pure functions from a view model to a plotly figure, in the colours of the reader's scheme."""

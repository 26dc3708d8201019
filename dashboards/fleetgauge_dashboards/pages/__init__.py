"""The pages of the dashboards: layouts and callbacks, one module per page."""

"""A lake's answers in the terminal: for a person, as JSON, as CSV."""

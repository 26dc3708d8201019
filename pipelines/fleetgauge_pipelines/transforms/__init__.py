"""DataFrame -> DataFrame: the definitions at scale. Nothing here reads or writes a table."""

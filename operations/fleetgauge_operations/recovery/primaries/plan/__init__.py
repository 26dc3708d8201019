"""Which cluster is the primary of a service, and whether another one may become it. Pure."""

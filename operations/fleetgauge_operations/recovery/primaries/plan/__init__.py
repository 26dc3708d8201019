"""Which cluster is the primary of a service, and whether another one may be promoted. Pure."""

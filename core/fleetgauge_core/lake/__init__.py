"""Access without a JVM to the tables of a lake, which is a local folder or a URI of an object store."""

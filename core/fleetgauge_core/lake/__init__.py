"""Lakes without a JVM, in a folder or behind a URI: tables opened, what their logs say, what may go."""

"""Where the pipelines meet files, jars and the outside."""

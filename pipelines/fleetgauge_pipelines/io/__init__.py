"""Input and output of the pipelines: Java, jars, the Spark session, Delta tables, record files and topics."""

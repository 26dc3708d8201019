"""`fleetgauge` for spark-submit, which wants a file. Not the package's own __main__.py: a script's
folder comes first on the path, and that one's holds modules named like the Kafka client."""

from fleetgauge_core.runtime.entry_point import run

run()

"""What can be missing on a machine; every text is one line with the mend in it.

SetupError
├── JarError    a jar set is not to be had as its lock describes it
└── JavaError   no Java that can be used
"""


class SetupError(Exception):
    """This machine lacks something that Spark or Kafka needs."""


class JarError(SetupError):
    """A jar set is not to be had as its lock describes it."""


class JavaError(SetupError):
    """No Java that can be used."""

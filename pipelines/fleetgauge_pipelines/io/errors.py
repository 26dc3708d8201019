"""Errors of a machine's set-up; each text is one line with the problem and its fix.

SetupError
├── JarError    jars cannot be fetched as their lock pins them
└── JavaError   no usable Java was found
"""

from fleetgauge_core.errors import OperationalError


class SetupError(OperationalError):
    """The machine lacks something that Spark or Kafka needs."""


class JarError(SetupError):
    """The jars of a lock cannot be fetched, or have other checksums."""


class JavaError(SetupError):
    """No Java of a supported version was found."""

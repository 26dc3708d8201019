"""The preconditions of a promotion; the module ``promotion`` checks them."""

from enum import StrEnum


class PreconditionName(StrEnum):
    """The name of a precondition."""

    LABEL = "label"
    """There is one primary, and it is the one to be replaced."""
    AGGREGATES = "aggregates"
    """Both clusters have replicated their common sources equally far."""
    INPUT_LAG = "input_lag"
    """The replication lag into the new primary is low."""
    GROUPS = "groups"
    """The service's consumer groups are ready to resume in the new primary."""
    HEADROOM = "headroom"
    """The new primary has the capacity for the whole load."""

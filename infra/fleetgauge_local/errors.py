"""What can go wrong with a local fleet; every text is one line with the mend in it.

LocalFleetError
├── NoFleetError     nothing runs in the folder that was asked
├── NotReadyError    brokers or mirrors did not come up by the deadline, or one of them ended
└── RequestError     the runner refused: an unknown cluster, broker, mirror or kind
"""


class LocalFleetError(Exception):
    """The fleet on this machine cannot do what was asked."""


class NoFleetError(LocalFleetError):
    """Nothing runs in the folder that was asked."""


class NotReadyError(LocalFleetError):
    """Brokers or mirrors did not come up by the deadline, or one of them ended."""


class RequestError(LocalFleetError):
    """The runner refused what it was asked."""

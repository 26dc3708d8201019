"""kafka-python reads its schemas in a deprecated way as it is imported; only there it is no error."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka  # noqa: F401

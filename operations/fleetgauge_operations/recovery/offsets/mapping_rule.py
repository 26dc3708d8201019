"""The rules that translate a group's position; the module ``mapping`` applies them."""

from enum import StrEnum


class MappingRule(StrEnum):
    """A translation rule; each resumes at the same offset as the one before it, or later."""

    UBER = "uber"
    PLUS_ONE = "plus_one"
    WATERMARK = "watermark"

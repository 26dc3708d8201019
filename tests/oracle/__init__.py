"""An independent oracle: service levels computed from their definitions by the simplest possible code.

It shares no code with the product except the tables' column names, so that a mistake in one of them shows as
a difference. It keeps everything in memory and loops over it; speed does not matter.
"""

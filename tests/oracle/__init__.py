"""An oracle: the service levels computed a second time, simply, from their definitions.

It shares no code with the pipeline (only the names of the tables' columns), so
that where the two agree, they agree on the definitions and not on a mistake.
It holds everything in memory and loops; speed is not its business.
"""

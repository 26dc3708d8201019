"""Lists of the product's public interface: what users call, and what programs read.

python -m tests.promises            adds new entries to the lists
python -m tests.promises --check    fails for removed and for unlisted entries

Each module ``*_promises`` collects one kind of entry; the lists are in ``list/``. Entries are removed from a
list only by hand. Entries that need a lake, Dash or Spark are compared by tests/unit/promises.
"""

"""Everything that others call or read of this product, as lists of text that are kept beside the tests.

python -m tests.promises            writes what is new into the lists
python -m tests.promises --check    fails for what is gone, and for what is not listed yet

Each module ``*_promises`` collects one kind of promise, and the lists lie in ``list/``. Nothing is taken off
a list but by hand. What needs a lake, Dash or Spark is compared by tests/unit/promises.
"""

"""Writes what is new into the lists, or checks that they hold what is there: see the package."""

import gc
import sys
from importlib.abc import MetaPathFinder

from tests.promises import lists


def main(arguments: list[str]) -> int:
    # All commands are imported and none of it is let go: collecting garbage meanwhile costs a tenth.
    gc.disable()
    return _check() if "--check" in arguments else _write()


def _write() -> int:
    from tests.promises.kinds import QUICK, slow

    for name, module in {**QUICK, **slow()}.items():
        lists.add(name, module.collect())
    return 0


def _check() -> int:
    sys.meta_path.insert(0, _NoPandas())
    from tests.promises.kinds import QUICK

    lines = [line for name, module in QUICK.items() for line in lists.differences(name, module.collect())]
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


class _NoPandas(MetaPathFinder):
    """Arrow imports pandas where it is installed, for more than a second, and nothing here needs it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=fullname)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Adds new entries to the lists, or with --check compares the lists with the product."""

import gc
import sys
from importlib.abc import MetaPathFinder

from tests.promises import lists


def main(arguments: list[str]) -> int:
    # All commands are imported and kept, so garbage collection frees nothing and costs a tenth of the time.
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
    """Blocks pandas: Arrow imports it if installed, which takes over a second and is not needed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=fullname)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

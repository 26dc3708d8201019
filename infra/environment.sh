#!/bin/sh
# Make a virtual environment from the locks: environment.sh PYTHON FOLDER
# What goes wrong is one line with its mend; the next run goes on where this one stopped.
set -eu
python=$1 folder=$2
log=$folder/setup.log

fail() {
    echo "make: $1" >&2
    exit 2
}

# Run a step; if it fails, its own last word is part of the line (uv ends a failed build with a hint that names no cause).
step() {
    what=$1 mend=$2
    shift 2
    "$@" >"$log" 2>&1 || fail "$what failed ($(grep -v -e '^ *$' -e '^hint:' "$log" | tail -n 1 | sed 's/^ *//')): $mend, then repeat; all of it is in $log"
}

# An index that is away for some seconds should cost no more than those.
again() {
    "$@" || { sleep 2; "$@"; } || { sleep 8; "$@"; }
}

command -v "$python" >/dev/null || fail "no Python: install 3.11, 3.12 or 3.13, or say PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' ||
    fail "$python is Python $("$python" -c 'import platform; print(platform.python_version())'): install 3.11, 3.12 or 3.13, or say PYTHON=/path/to/python"
mkdir -p "$folder" 2>/dev/null || fail "$folder cannot be made: free space or set the rights, then repeat"

# uv is told of another index as pip is.
if [ -n "${PIP_INDEX_URL:-}" ] && [ -z "${UV_DEFAULT_INDEX:-}" ]; then
    export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
fi
fetch="check the network (PIP_INDEX_URL names another index) and the disk"

echo "making $folder (about a minute the first time)" >&2
test -x "$folder/bin/python" || step "making the environment" "install Python's venv module (python3-venv) and check the disk" "$python" -m venv "$folder"
step "fetching uv" "$fetch" again "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 15 --require-hashes -r locks/uv.txt
# Some packages come as source alone (pyspark): what builds them is from the lock as well.
step "fetching packages" "$fetch" again "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --require-hashes --build-constraints locks/python.txt -r locks/python.txt
step "installing fleetgauge" "$fetch" "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --no-deps --no-build-isolation -e .

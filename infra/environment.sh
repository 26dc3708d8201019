#!/bin/sh
# Create a virtual environment from the locks: environment.sh PYTHON FOLDER
# An error is one line with its remedy; the next run continues where this one stopped.
set -eu
python=$1 folder=$2
log=$folder/setup.log

fail() {
    echo "make: $1" >&2
    exit 2
}

# Run a step; the error contains its last line of output, except for hints, with which uv ends a failed build.
step() {
    what=$1 remedy=$2
    shift 2
    "$@" >"$log" 2>&1 || fail "$what failed ($(grep -v -e '^ *$' -e '^hint:' "$log" | tail -n 1 | sed 's/^ *//')): $remedy, then repeat; see $log for the full output"
}

# Retry, as a package index may be unavailable for some seconds.
retry() {
    "$@" || { sleep 2; "$@"; } || { sleep 8; "$@"; }
}

command -v "$python" >/dev/null || fail "no Python: install 3.11, 3.12 or 3.13, or set PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' ||
    fail "$python is Python $("$python" -c 'import platform; print(platform.python_version())'): install 3.11, 3.12 or 3.13, or set PYTHON=/path/to/python"
mkdir -p "$folder" 2>/dev/null || fail "$folder cannot be created: free space or set its permissions, then repeat"

# uv uses the same index as pip.
if [ -n "${PIP_INDEX_URL:-}" ] && [ -z "${UV_DEFAULT_INDEX:-}" ]; then
    export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
fi
fetch="check the network (PIP_INDEX_URL sets another index) and the disk"

echo "creating $folder (about a minute the first time)" >&2
test -x "$folder/bin/python" || step "creating the environment" "install Python's venv module (python3-venv) and check the disk" "$python" -m venv "$folder"
step "fetching uv" "$fetch" retry "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 15 --require-hashes -r locks/uv.txt
# Some packages have only a source distribution (pyspark); their build dependencies are also locked.
step "fetching packages" "$fetch" retry "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --require-hashes --build-constraints locks/python.txt -r locks/python.txt
step "installing fleetgauge" "$fetch" "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --no-deps --no-build-isolation -e .

#!/usr/bin/env bash
# Builds the tools with ASan and UBSan, and runs the unit tests, the lit suite and broken inputs under them.
# Usage: scripts/sanitize.sh [broken inputs]   after scripts/setup.sh; 400 by default
set -euo pipefail
cd "$(dirname "$0")/.."

if ! dpkg-query -W -f='${Status}' libclang-rt-22-dev 2>/dev/null | grep -q 'ok installed'; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libclang-rt-22-dev >/dev/null
fi
python=${PYTHON:-.venv/bin/python}
cmake --preset sanitize -DPython_EXECUTABLE="$(command -v "$python")"
ninja -C build-sanitize

# MLIR's libraries are not instrumented. They share arenas with our code and would not unpoison what our code poisons.
# The sanitizer itself limits memory: its shadow is larger than any limit that the system could set.
export ASAN_OPTIONS=allow_user_poisoning=0:detect_leaks=0:hard_rss_limit_mb=8192
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
build-sanitize/bin/tilewright-unit-tests --gtest_brief=1
/usr/lib/llvm-22/bin/lit -q build-sanitize/test
TILEWRIGHT_TOOLS=$PWD/build-sanitize/bin PYTHONPATH=build/python "$python" -m fuzz --hostile "${1:-400}" --corpus test

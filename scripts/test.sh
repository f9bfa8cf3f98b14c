#!/usr/bin/env bash
# Installs, builds and runs the tests: lit, gtest, and pytest with end-to-end numerics. Without --all it runs those that
# a change must pass to land; --all adds the rest (docs/design/testing.md).
# Usage: scripts/test.sh [--all] [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test docs # with mkdocs, because a test builds the site
ninja -C build tilewright-opt tilewright-unit-tests
# Hundreds of processes that tests start would else compile our modules anew, 0.4 s each.
unset PYTHONDONTWRITEBYTECODE
.venv/bin/python -m pytest test --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
  "$@"

#!/usr/bin/env bash
# Installs, builds and passes the tests: lit, gtest, pytest with end-to-end numerics. Without --all these are what a change
# has to pass to land; --all adds the rest (docs/testing.md).
# Usage: scripts/test.sh [--all] [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
ninja -C build tilewright-opt tilewright-unit-tests
.venv/bin/python -m pytest test --numprocesses auto --maxprocesses 4 --dist loadfile "$@"

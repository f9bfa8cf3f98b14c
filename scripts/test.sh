#!/usr/bin/env bash
# Installs, builds and passes all tests: lit, gtest, pytest with end-to-end numerics.
# Usage: scripts/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
ninja -C build tilewright-opt tilewright-unit-tests
.venv/bin/python -m pytest test --numprocesses auto --maxprocesses 4 --dist loadfile "$@"

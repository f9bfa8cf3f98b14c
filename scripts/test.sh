#!/usr/bin/env bash
# Installs, builds and tests: lit, gtest, pytest with end-to-end numerics. What a change has to pass to land is the
# default; --all adds the rest, which takes hours on two cores (docs/testing.md).
# Usage: scripts/test.sh [--all] [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
ninja -C build tilewright-opt tilewright-unit-tests
.venv/bin/python -m pytest test --numprocesses auto --maxprocesses 4 --dist loadfile "$@"

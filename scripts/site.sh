#!/usr/bin/env bash
# Builds the documentation as a site in build-site/, or serves it while it is edited. Nothing else has to be built for it.
# Usage: scripts/site.sh [build|serve]
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || python3 -m venv .venv
pins=$(.venv/bin/python -c '
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
# shellcheck disable=SC2086 # one word for each package
.venv/bin/pip install -q $pins
exec .venv/bin/mkdocs "${1:-build}" --strict

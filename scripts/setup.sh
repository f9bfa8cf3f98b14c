#!/usr/bin/env bash
# Installs what Tilewright needs on a Debian machine (apt and pip only) and builds it into .venv and build/.
# Usage: scripts/setup.sh [extra...]   extras of pyproject.toml, "test" by default
set -euo pipefail
cd "$(dirname "$0")/.."
extras=${*:-test}

packages=(python3 python3-venv python3-dev cmake ninja-build ccache g++ zlib1g-dev libzstd-dev libgtest-dev
          clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

[ -x .venv/bin/python ] || python3 -m venv .venv
# The build runs in this environment, not in an isolated one, so that build/ stays valid from run to run.
.venv/bin/pip install -q 'scikit-build-core==1.1.2' 'nanobind==3.1.0'
# The libraries are dynamic, as in the preset "dev": a self-contained wheel takes longer to link (scripts/wheel.sh).
.venv/bin/pip install -q --no-build-isolation --config-settings=build-dir=build \
  --config-settings=cmake.define.TILEWRIGHT_STATIC=OFF \
  --config-settings=cmake.define.TILEWRIGHT_TESTS=ON ".[${extras// /,}]"

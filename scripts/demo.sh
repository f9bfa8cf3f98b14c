#!/usr/bin/env bash
# Installs, builds, and runs the main job on the CPU: BERT-base from ONNX, compiled into few kernels, checked against
# float64 and timed beside IREE alone and ONNX Runtime.
# Usage: scripts/demo.sh [workload]   bert by default; `bert-small` takes seconds
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
workload=${1:-bert}
mkdir -p models
.venv/bin/python -m benchmarks.workloads "$workload" -o "models/$workload.onnx"
.venv/bin/tilewright run "models/$workload.onnx" --compare

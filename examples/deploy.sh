#!/usr/bin/env bash
# Deployment with IREE's own tool: compiles once, then runs the module without Python or Tilewright. An application that
# links IREE's runtime sets the same options through its API (iree/runtime/api.h); deploy.c needs no IREE.
# Usage: examples/deploy.sh [FOLDER]   a new temporary folder by default
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}

# On the machine of the developer.
(cd "$root" && python -m benchmarks.workloads bert-small -o "$folder/encoder.onnx")
cd "$folder"
tilewright compile encoder.onnx --target x86-64-avx2 --threads 2 -o encoder.vmfb

# On the machine that runs it: encoder.vmfb and encoder.irpa are all it needs.
iree-run-module --device=local-task --task_topology_max_group_count=2 --task_worker_local_memory=2097152 \
  "--device_allocator=caching:device_local=*;*;64" \
  --module=encoder.vmfb --parameters=model=encoder.irpa --function=bert \
  --input=1x32x128xf32=0.5 --input=1x32xi64=1 --output=@output.npy
ls -l encoder.vmfb encoder.irpa output.npy

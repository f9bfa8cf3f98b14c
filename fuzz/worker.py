"""The judging process: `python -m fuzz.worker`.

The models that it runs may kill it; see `tilewright.worker.process`.
"""

from __future__ import annotations

from tilewright.worker import serving
from tilewright.worker.process import keep_compilers

if __name__ == "__main__":
    # One compiler's process serves all requests; it starts anew after a crash.
    with keep_compilers():
        serving.main("fuzz")

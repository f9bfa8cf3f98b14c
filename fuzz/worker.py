"""The judging process: `python -m fuzz.worker`.

The models that it runs may kill it; see `tilewright.worker.process`.
"""

from __future__ import annotations

from tilewright.worker import serving

if __name__ == "__main__":
    serving.main("fuzz")

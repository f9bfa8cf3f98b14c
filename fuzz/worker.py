"""The process that judges: `python -m fuzz.worker`.

It may die of what it runs; see `tilewright.worker.process`.
"""

from __future__ import annotations

from tilewright.worker import serving

if __name__ == "__main__":
    serving.main("fuzz")

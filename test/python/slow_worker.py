"""A worker that hangs in the step that the environment variable HANG_IN names."""

from __future__ import annotations

import os
import time

from tilewright.iree import service
from tilewright.worker import serving as worker
from tilewright.worker.doing import doing


def _hang(step: str) -> None:
    doing(step)
    if step == os.environ["HANG_IN"]:
        time.sleep(300)


vars(service)["doing"] = _hang

if __name__ == "__main__":
    worker.main()

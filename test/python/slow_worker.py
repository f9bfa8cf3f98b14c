"""A worker that stays for ever in the step that the variable HANG_IN names."""

from __future__ import annotations

import os
import time

from tilewright import worker
from tilewright.doing import doing
from tilewright.iree import service


def _hang(step: str) -> None:
    doing(step)
    if step == os.environ["HANG_IN"]:
        time.sleep(300)


vars(service)["doing"] = _hang

if __name__ == "__main__":
    worker.main()

"""Operations of the `math` dialect: functions such as exp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.dialects._math_ops_gen import *

if TYPE_CHECKING:
    # This declaration serves to type-check the source alone, where the generated module does not exist yet.
    def __getattr__(name: str) -> Any: ...

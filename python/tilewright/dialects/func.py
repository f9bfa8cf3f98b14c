"""Operations of the `func` dialect: functions, calls and returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.dialects._func_ops_gen import *

if TYPE_CHECKING:
    # This declaration serves to type-check the source alone, where the generated module does not exist yet.
    def __getattr__(name: str) -> Any: ...

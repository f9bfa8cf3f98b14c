"""Operations of the `arith` dialect: arithmetic on numbers, vectors and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.dialects._arith_enum_gen import *
from tilewright.dialects._arith_ops_gen import *

if TYPE_CHECKING:
    # This declaration serves to type-check the source alone, where the generated modules do not exist yet.
    def __getattr__(name: str) -> Any: ...

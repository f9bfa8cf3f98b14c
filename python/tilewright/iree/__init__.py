"""Everything that knows IREE's compiler: the only part of Tilewright that does."""

from tilewright.iree.compiler import Diagnostic, IreeCompiler, Phase
from tilewright.iree.versions import PINNED_IREE, check_iree

__all__ = ["PINNED_IREE", "Diagnostic", "IreeCompiler", "Phase", "check_iree"]

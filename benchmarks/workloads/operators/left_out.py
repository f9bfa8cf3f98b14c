"""The operators and types that the suite `ops` leaves out, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_RANDOM = "its results are random"
_STRINGS = "it is refused: it computes on strings or pictures"
_SEQUENCES = "it handles a sequence or an optional value, and computes nothing"
_NO_REFERENCE = "neither ONNX nor ONNX Runtime evaluates it"
_IMPORTER = "it is refused: IREE's importer does not legalise it"
_DIES = "it is refused: IREE's compiler ends by a signal"
_CONSTANT = "its results are constants of the program"

LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "Bernoulli",
            "Multinomial",
            "RandomNormal",
            "RandomNormalLike",
            "RandomUniform",
            "RandomUniformLike",
        ),
        _RANDOM,
    ),
    **dict.fromkeys(
        (
            "ImageDecoder",
            "RegexFullMatch",
            "StringConcat",
            "StringNormalizer",
            "StringSplit",
            "TfIdfVectorizer",
        ),
        _STRINGS,
    ),
    **dict.fromkeys(
        (
            *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt"),
            *("SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength"),
            *("SequenceMap", "SplitToSequence"),
        ),
        _SEQUENCES,
    ),
    **dict.fromkeys(
        (
            *(
                "BlackmanWindow",
                "Constant",
                "ConstantOfShape",
                "HammingWindow",
                "HannWindow",
                "MelWeightMatrix",
            ),
            "Range",
        ),
        _CONSTANT,
    ),
    "AffineGrid": "it is refused: the type of a value in its definition is not known",
    "STFT": _IMPORTER,
    "Unique": _DIES,
    **dict.fromkeys(("GlobalLpPool", "MaxRoiPool"), _NO_REFERENCE),
    **dict.fromkeys(("Scatter", "Upsample"), "opset 11 or 10 deprecated it"),
}
"""Operators that are not checked in any type."""

LEFT_OUT_TYPES: Mapping[tuple[str, str], str] = {
    ("QuantizeLinear", "i32"): "its scale would be a whole number",
    **dict.fromkeys((("Shrink", dtype) for dtype in ("i8", "u8", "i32", "i64")), _IMPORTER),
    **dict.fromkeys((("GroupNormalization", dtype) for dtype in ("f16", "bf16")), _IMPORTER),
    **dict.fromkeys((("ReduceMean", dtype) for dtype in ("i32", "i64")), _IMPORTER),
    **dict.fromkeys((("Einsum", dtype) for dtype in ("i8", "u8")), _DIES),
    **dict.fromkeys((("Col2Im", dtype) for dtype in ("i8", "u8")), _DIES),
    **dict.fromkeys((("GridSample", dtype) for dtype in ("f16", "bf16")), _IMPORTER),
    ("ScatterND", "u8"): "it is refused: IREE's importer takes it as signed",
    ("OneHot", "bool"): _NO_REFERENCE,
    ("Resize", "bool"): _NO_REFERENCE,
    **dict.fromkeys(
        (("MeanVarianceNormalization", "f16"), ("MeanVarianceNormalization", "bf16")),
        "it is not valid ONNX: its definition adds a number in f32",
    ),
}
"""Pairs of operator and type that are not checked."""


def is_left_out(op: str, dtype: str) -> bool:
    """Returns True if the suite leaves the operator out in this type."""
    return op in LEFT_OUT or (op, dtype) in LEFT_OUT_TYPES

"""Reductions, searches and normalisations."""

from __future__ import annotations

from benchmarks.workloads.operators.model import OpModel

_AXES: tuple[tuple[int, ...], ...] = ((1,), (0, 2), (2,), (0, 1, 2))


def reduce(m: OpModel) -> None:
    """Adds reductions over the first, the last, several and all axes."""
    x, short = m.input(5, 3, 35), m.input(5, 3, 4)
    for op in ("ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"):
        _reduce(m, op, x)
    if m.is_float:
        positive = m.op("Add", m.op("Abs", x), m.number(0.5))
        factors = m.op("Add", m.op("Mul", m.op("Tanh", short), m.number(0.25)), m.number(1))
    elif m.takes("ReduceSum"):
        # Means of whole numbers are cut off, and products of them overflow.
        positive = m.op("Mul", x, m.number(9))
        factors = m.op("Sign", m.op("Add", m.op("Mul", short, m.number(2)), m.number(1)))
    else:
        return
    for op in ("ReduceSum", "ReduceMean", "ReduceLogSum"):
        _reduce(m, op, positive)
    _reduce(m, "ReduceProd", factors)


def _reduce(m: OpModel, op: str, x: str) -> None:
    for keep, axes in enumerate(_AXES):
        m.check(op, x, m.ints(*axes), keepdims=keep % 2)


def search(m: OpModel) -> None:
    """Adds operators that find elements or order them, and running sums."""
    x = m.input(5, 3, 35)
    for op in ("ArgMax", "ArgMin"):
        for axis, last in ((0, 0), (2, 1), (-2, 0)):
            m.check(op, x, axis=axis, keepdims=axis % 2, select_last_index=last)
    for axis, largest in ((2, 1), (0, 0)):
        m.check("TopK", x, m.ints(3), results=2, axis=axis, largest=largest)
    for exclusive, backwards in ((0, 0), (1, 0), (0, 1)):
        m.check("CumSum", x, m.number(1, "i64"), exclusive=exclusive, reverse=backwards)


def normalize(m: OpModel) -> None:
    """Adds softmaxes and norms."""
    x = m.input(5, 4, 37)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (2, 0):
            m.check(op, x, axis=axis)
    for axis in (-1, 1):
        shape = (37,) if axis == -1 else (4, 37)
        m.check("LayerNormalization", x, m.numbers(*shape), m.numbers(*shape), axis=axis)
    for p in (1, 2):
        m.check("LpNormalization", x, axis=1, p=p)
    gains = [m.numbers(4), m.numbers(4)]
    m.check("InstanceNormalization", x, *gains)
    m.check("GroupNormalization", x, *gains, num_groups=2, shape=(5, 4, 37))
    if m.takes("BatchNormalization"):
        mean = m.numbers(4)
        m.check("BatchNormalization", x, *gains, mean, m.op("Add", m.op("Abs", mean), m.number(0.5)))
    m.check("MeanVarianceNormalization", m.input(2, 5, 7, 9), axes=[0, 2, 3])
    # The reference of ONNX takes as many channels as there are images.
    m.check("LRN", m.input(5, 5, 7, 3), size=3, alpha=0.1)
    if m.is_float:
        _lose(m)


def _lose(m: OpModel) -> None:
    labels = m.op("Abs", m.input(5, dtype="i64", name="i"))
    for reduction in ("mean", "sum", "none"):
        m.check("SoftmaxCrossEntropyLoss", m.input(5, 7), labels, reduction=reduction)
        m.check("NegativeLogLikelihoodLoss", m.input(5, 7), labels, reduction=reduction)

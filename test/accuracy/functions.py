"""The measured functions: each as a kernel's body, with its exact counterpart and its error bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import mpmath


@dataclass(frozen=True, kw_only=True)
class Function:
    """`body` computes %r from %a (and %b), all f32."""

    name: str
    body: str
    bound: float
    """Bound in ulp of the result, or of the argument."""
    exact: str
    """Exact function as an mpmath expression of x and y."""
    binary: bool = False
    of_argument: bool = False
    """True if the error is bounded relative to the argument, because the composition itself cancels."""
    domain: tuple[float, float] = (-math.inf, math.inf)
    """Range of arguments outside of which the composition overflows inside and returns the limit of its result."""
    critical: tuple[float, ...] = field(default=())
    """Arguments at which the code changes its method; their neighbourhoods are tested, as are those of 0, 1 and the
    range's ends."""

    def expected(self, x: float, y: float) -> mpmath.mpf:
        """Returns the exact result, to 60 digits more than the largest reduction loses."""
        with mpmath.workdps(120):
            scope = {"x": mpmath.mpf(x), "y": mpmath.mpf(y), "mp": mpmath}
            return eval(self.exact, scope)


def _op(name: str, exact: str, bound: float, *critical: float) -> Function:
    return Function(name=name, body=f"%r = math.{name} %a : f32", exact=exact, bound=bound, critical=critical)


def _pair(name: str, op: str, exact: str, bound: float) -> Function:
    return Function(name=name, body=f"%r = math.{op} %a, %b : f32", exact=exact, bound=bound, binary=True)


_BELOW_ONE = """%n = math.absf %a : f32
    %m = arith.negf %n : f32
    %r = math.exp %m {tile.for_bf16} : f32"""
_ONE = "%one = arith.constant 1.0 : f32"
_SIGMOID = f"""{_ONE}
    %n = arith.negf %a : f32
    %e = math.exp %n fastmath<afn> : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %one, %d : f32"""
_GELU = f"""{_ONE}
    %half = arith.constant 0.5 : f32
    %scale = arith.constant 0.70710678118654752 : f32
    %u = arith.mulf %a, %scale : f32
    %e = math.erf %u : f32
    %p = arith.addf %e, %one : f32
    %h = arith.mulf %a, %half : f32
    %r = arith.mulf %h, %p : f32"""
_GELU_TANH = f"""{_ONE}
    %half = arith.constant 0.5 : f32
    %cubic = arith.constant 0.044715 : f32
    %scale = arith.constant 0.79788456080286535588 : f32
    %s = arith.mulf %a, %a : f32
    %c = arith.mulf %s, %a : f32
    %k = arith.mulf %c, %cubic : f32
    %i = arith.addf %a, %k : f32
    %u = arith.mulf %i, %scale : f32
    %t = math.tanh %u fastmath<afn> : f32
    %p = arith.addf %t, %one : f32
    %h = arith.mulf %a, %half : f32
    %r = arith.mulf %h, %p : f32"""
_ONE_PLUS_TANH = f"""{_ONE}
    %t = math.tanh %a fastmath<afn> : f32
    %r = arith.addf %t, %one : f32"""
_SOFTPLUS = "%e = math.exp %a : f32\n    %r = math.log1p %e : f32"

FUNCTIONS = {
    function.name: function
    for function in (
        _op("exp", "mp.exp(x)", 1, 88.722839, -87.336545, -103.97208),
        Function(
            name="exp_for_bf16",
            body=_BELOW_ONE,
            exact="mp.exp(-abs(x))",
            bound=2048,
            domain=(-87.3, 87.3),
        ),
        _op("exp2", "mp.mpf(2)**x", 1, 128.0, -126.0, -149.0, -150.0),
        _op("expm1", "mp.expm1(x)", 1.1, 88.722839, -17.328680, 0.34657359, -0.34657359, 2.0**-25),
        _op("log", "mp.log(x)", 1, 0.5**0.5, 2.0**0.5, 2.0**-126),
        _op("log2", "mp.log(x, 2)", 1, 0.5**0.5, 2.0**0.5, 2.0**-126),
        _op("log10", "mp.log10(x)", 1, 0.5**0.5, 2.0**0.5, 2.0**-126),
        _op("log1p", "mp.log1p(x)", 1, 2.0**0.5 - 1, 0.5**0.5 - 1, -1.0, 2.0**-25, 2.0**24),
        _op("rsqrt", "1/mp.sqrt(x)", 1),
        _op("tanh", "mp.tanh(x)", 2, 0.28, 9.01, 9.1),
        _op("erf", "mp.erf(x)", 2.1, 1.0, 3.83, 3.93),
        _op("sin", "mp.sin(x)", 2, 0.78539816, 1.5707963, 65536.0, 2.0**25),
        _op("cos", "mp.cos(x)", 2, 0.78539816, 1.5707963, 65536.0, 2.0**25),
        _op("tan", "mp.tan(x)", 4, 0.78539816, 1.5707963, 65536.0, 2.0**25),
        _op("sinh", "mp.sinh(x)", 3, 89.415986, 2.0**-12),
        _op("cosh", "mp.cosh(x)", 2, 89.415986),
        _op("asin", "mp.asin(x)", 4, 0.5, 1.0),
        _op("acos", "mp.acos(x)", 4, 0.5, 1.0),
        _op("atan", "mp.atan(x)", 4, 1.0),
        _op("asinh", "mp.asinh(x)", 4),
        _op("acosh", "mp.acosh(x)", 4, 1.0),
        _op("atanh", "mp.atanh(x)", 4, 1.0),
        _op("cbrt", "mp.sign(x)*mp.cbrt(abs(x))", 4),
        _pair("pow", "powf", "mp.power(x, y)", 2),
        _pair("atan2", "atan2", "mp.atan2(x, y)", 4),
        Function(
            name="sigmoid",
            body=f"{_SIGMOID}\n    %r = arith.divf %one, %d : f32",
            exact="1/(1+mp.exp(-x))",
            bound=3,
            domain=(-87.3, math.inf),
        ),
        Function(
            name="silu",
            body=f"{_SIGMOID}\n    %r = arith.mulf %a, %s : f32",
            exact="x/(1+mp.exp(-x))",
            bound=4,
            domain=(-87.3, math.inf),
        ),
        Function(name="gelu", body=_GELU, exact="x*mp.erfc(-x/mp.sqrt(2))/2", bound=2, of_argument=True),
        Function(
            name="gelu_tanh",
            body=_GELU_TANH,
            exact="x/(1+mp.exp(-2*mp.sqrt(2/mp.pi)*(x+mp.mpf('0.044715')*x**3)))",
            bound=2.1,
            of_argument=True,
        ),
        Function(
            name="one_plus_tanh",
            body=_ONE_PLUS_TANH,
            exact="2/(1+mp.exp(-2*x))",
            bound=3,
            domain=(-43.6, math.inf),
        ),
        Function(
            name="softplus", body=_SOFTPLUS, exact="mp.log1p(mp.exp(x))", bound=2, domain=(-math.inf, 88.7)
        ),
    )
}

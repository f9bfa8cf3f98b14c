// Reference of the accuracy measurement: fills arguments, evaluates functions in double precision, and compares.
//
// Sweeps use glibc's vector functions (libmvec, errors of a few ulp of double). Results that look worse than the worst
// so far, or wrong, are compared again with scalar libm.
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 512 };

#ifdef __AVX512F__
typedef __m512d Doubles;
#define LANES 8
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, v) _mm512_storeu_pd(p, v)
#define MVEC1(f) _ZGVeN8v_##f
#define MVEC2(f) _ZGVeN8vv_##f
#else
typedef __m256d Doubles;
#define LANES 4
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, v) _mm256_storeu_pd(p, v)
#define MVEC1(f) _ZGVdN4v_##f
#define MVEC2(f) _ZGVdN4vv_##f
#endif

typedef void Block(const double *x, const double *y, double *out);
typedef double Scalar(double x, double y);

// Defines the reference of a function that libmvec has.
#define UNARY(f)                                                                                                       \
  Doubles MVEC1(f)(Doubles);                                                                                           \
  static void f##_block(const double *x, const double *y, double *out) {                                               \
    for (int i = 0; i < BLOCK; i += LANES)                                                                             \
      STORE(out + i, MVEC1(f)(LOAD(x + i)));                                                                           \
  }                                                                                                                    \
  static double f##_scalar(double x, double y) { return f(x); }
#define BINARY(f)                                                                                                      \
  Doubles MVEC2(f)(Doubles, Doubles);                                                                                  \
  static void f##_block(const double *x, const double *y, double *out) {                                               \
    for (int i = 0; i < BLOCK; i += LANES)                                                                             \
      STORE(out + i, MVEC2(f)(LOAD(x + i), LOAD(y + i)));                                                              \
  }                                                                                                                    \
  static double f##_scalar(double x, double y) { return f(x, y); }
// Defines the reference of a function made of another, `f`: `before` is the argument of `f`, and `after` the result,
// computed from x and v = f(before).
#define COMPOSED(name, f, before, after)                                                                               \
  static void name##_block(const double *xs, const double *ys, double *out) {                                          \
    double inner[BLOCK];                                                                                               \
    for (int i = 0; i < BLOCK; ++i) {                                                                                  \
      double x = xs[i];                                                                                                \
      inner[i] = before;                                                                                               \
    }                                                                                                                  \
    f##_block(inner, ys, out);                                                                                         \
    for (int i = 0; i < BLOCK; ++i) {                                                                                  \
      double x = xs[i], v = out[i];                                                                                    \
      (void)x;                                                                                                         \
      out[i] = after;                                                                                                  \
    }                                                                                                                  \
  }                                                                                                                    \
  static double name##_scalar(double x, double y) {                                                                    \
    double v = f##_scalar(before, y);                                                                                  \
    return after;                                                                                                      \
  }

UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log2) UNARY(log10) UNARY(log1p)
UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(erf) UNARY(erfc)
UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan)
UNARY(asinh) UNARY(acosh) UNARY(atanh) UNARY(cbrt)
BINARY(pow) BINARY(atan2)

static void identity_block(const double *x, const double *y, double *out) { memcpy(out, x, BLOCK * sizeof *x); }
static double identity_scalar(double x, double y) { return x; }
COMPOSED(rsqrt, identity, x, 1 / sqrt(v))
COMPOSED(sigmoid, exp, -x, 1 / (1 + v))
COMPOSED(silu, exp, -x, x / (1 + v))
COMPOSED(exp_for_bf16, exp, -fabs(x), v)
COMPOSED(gelu, erfc, x * -0.70710678118654752440, 0.5 * x * v)
COMPOSED(gelu_tanh, exp, -2 * (0.79788456080286535588 * (x + 0.044715 * x * x * x)), x / (1 + v))
COMPOSED(one_plus_tanh, exp, -2 * x, 2 / (1 + v))
COMPOSED(softplus, exp, x, log1p(v))

#define ENTRY(f) {#f, f##_block, f##_scalar}
static const struct {
  const char *name;
  Block *block;
  Scalar *scalar;
} kReferences[] = {
    ENTRY(exp),   ENTRY(exp2),  ENTRY(expm1), ENTRY(log),   ENTRY(log2),     ENTRY(log10), ENTRY(log1p), ENTRY(sinh),
    ENTRY(cosh),  ENTRY(tanh),  ENTRY(erf),   ENTRY(sin),   ENTRY(cos),      ENTRY(tan),   ENTRY(asin),  ENTRY(acos),
    ENTRY(atan),  ENTRY(asinh), ENTRY(acosh), ENTRY(atanh), ENTRY(cbrt),     ENTRY(pow),   ENTRY(atan2), ENTRY(rsqrt),
    ENTRY(silu),  ENTRY(gelu),  ENTRY(sigmoid), ENTRY(gelu_tanh), ENTRY(one_plus_tanh), ENTRY(softplus),
    ENTRY(exp_for_bf16),
};

int find_reference(const char *name) {
  for (unsigned i = 0; i < sizeof kReferences / sizeof *kReferences; ++i)
    if (strcmp(kReferences[i].name, name) == 0)
      return i;
  return -1;
}

struct Verdict {
  double worst; // largest error in ulp
  float worst_x, worst_y, worst_got;
  float wrong_x, wrong_y, wrong_got; // the first wrong result
  uint64_t wrong; // number of results whose NaN, infinity, zero or sign differs from that of the exact result
  uint64_t judged; // number of results compared
};

static double ulp_at(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int64_t exponent = (int64_t)(bits >> 52 & 0x7FF) - 1023;
  exponent = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
  bits = (uint64_t)(exponent - 23 + 1023) << 52;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// Infinity counts as 2^128, so that an overflow within half an ulp is correct, and an earlier one has a finite error.
static double clipped(double x) { return fmax(-0x1p128, fmin(0x1p128, x)); }

static double error(double exact, float got, double unit) {
  return fabs(clipped(got) - clipped(exact)) / (unit > 0 ? unit : ulp_at(exact));
}

static bool is_wrong(double exact, float got) {
  bool early = isinf(got) & (fabs(exact) < 0x1.fffffep127), late = isinf(exact) & !isinf(got);
  bool zero = (exact == 0) & (got != 0), sign = !signbit(exact) != !signbit(got);
  bool number = !isnan(exact) & !isnan(got);
  return (number & (early | late | zero | sign)) | (isnan(exact) != isnan(got));
}

static void judge(Scalar *scalar, float x, float y, float got, bool of_argument, struct Verdict *verdict) {
  double exact = scalar(x, y), unit = of_argument ? ulp_at(x) : 0;
  // If errors are measured in ulp of the argument, a wrong sign or zero of a tiny result is within one ulp.
  if (is_wrong(exact, got) && !(of_argument && fabs(exact - got) <= unit)) {
    if (verdict->wrong++ == 0)
      verdict->wrong_x = x, verdict->wrong_y = y, verdict->wrong_got = got;
  } else if (!isnan(got) && error(exact, got, unit) > verdict->worst) {
    verdict->worst = error(exact, got, unit);
    verdict->worst_x = x, verdict->worst_y = y, verdict->worst_got = got;
  }
}

// Compares a kernel's results with the exact ones. With `of_argument`, errors are measured in ulp of x, not of the
// result. Finite arguments outside of low .. high are skipped. With `flushed`, the kernel treats denormal numbers as
// zeros, so denormal arguments and results close to denormal are skipped.
void compare(int reference, const float *x, const float *y, const float *got, int64_t count, int of_argument,
             int flushed, float low, float high, struct Verdict *verdict) {
  const float least = 0x1p-126f;
  for (int64_t start = 0; start < count; start += BLOCK) {
    double xs[BLOCK], ys[BLOCK], exact[BLOCK];
    int size = count - start < BLOCK ? count - start : BLOCK;
    for (int i = 0; i < BLOCK; ++i) {
      xs[i] = i < size ? x[start + i] : 1;
      ys[i] = i < size ? y[start + i] : 1;
    }
    kReferences[reference].block(xs, ys, exact);
    bool suspect[BLOCK];
    for (int i = 0; i < BLOCK; ++i) {
      float result = i < size ? got[start + i] : 0;
      double off = error(exact[i], result, of_argument ? ulp_at(xs[i]) : 0);
      suspect[i] = off > verdict->worst || is_wrong(exact[i], result);
    }
    for (int i = 0; i < size; ++i) {
      bool skipped = flushed && ((x[start + i] != 0 && fabsf(x[start + i]) < least) ||
                                 (y[start + i] != 0 && fabsf(y[start + i]) < least) || fabs(exact[i]) < 2 * least);
      skipped |= isfinite(x[start + i]) && (x[start + i] < low || x[start + i] > high);
      verdict->judged += !skipped;
      if (suspect[i] && !skipped)
        judge(kReferences[reference].scalar, x[start + i], y[start + i], got[start + i], of_argument, verdict);
    }
  }
}

// Sets x[i] to the float with the bits first + i * stride.
void fill(float *x, uint32_t first, uint32_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = first + (uint32_t)i * stride;
    memcpy(x + i, &bits, sizeof bits);
  }
}

// Draws pairs of random bits. Every other pair has magnitudes that do not overflow immediately. The generator is a
// counter with a mixing function (the finalizer of SplitMix64).
void draw(float *x, float *y, uint64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint64_t z = (first + i) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    uint32_t bits_x = z, bits_y = z >> 32;
    memcpy(x + i, &bits_x, sizeof bits_x);
    memcpy(y + i, &bits_y, sizeof bits_y);
    if (i & 1) { // x within 2^-8 .. 2^8, y such that the result is finite
      bits_x = 0x3B800000 + bits_x % 0x08000000;
      memcpy(x + i, &bits_x, sizeof bits_x);
      y[i] = ((int32_t)(z >> 32) * 0x1p-31f) * 126 / fmaxf(fabsf(log2f(x[i])), 0x1p-20f);
    }
  }
}

// Sets flush-to-zero and denormals-are-zero for the calling thread, as IREE's runtime does.
void set_flush(int on) { _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u); }

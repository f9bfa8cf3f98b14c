// Polynomials of the vector math, from the lowest coefficient. Made by scripts/minimax.py: edit that instead.
// clang-format off
#ifndef TILEWRIGHT_CODEGEN_COMMON_VECTORMATHTABLES_H
#define TILEWRIGHT_CODEGEN_COMMON_VECTORMATHTABLES_H

namespace tilewright::vecmath {

/// exp r = 1 + r + r^2 P(r), |r| <= ln 2 / 2; error 2^-28.18.
inline constexpr float kExp[] = {4.99999940e-01f, 1.66665137e-01f, 4.16680612e-02f, 8.36955011e-03f, 1.38437818e-03f};

/// expm1 r = r + r^2 P(r), |r| <= 0.69; error 2^-29.11.
inline constexpr float kExpM1[] = {5.00000000e-01f, 1.66666731e-01f, 4.16666903e-02f, 8.33257288e-03f, 1.38871185e-03f, 2.01026793e-04f, 2.51945530e-05f};

/// 2^r = 1 + r P(r), |r| <= 1/2; error 2^-26.25.
inline constexpr float kExp2[] = {6.93147182e-01f, 2.40225941e-01f, 5.55036627e-02f, 9.62541997e-03f, 1.33879774e-03f, 1.33468828e-04f};

/// 2^r = 1 + r P(r), |r| <= 1/2; error 2^-13.26.
inline constexpr float kExp2ForBf16[] = {6.93284035e-01f, 2.42218912e-01f, 5.50068133e-02f};

/// ln(1 + f) = f + f^2 P(f), 1/sqrt 2 <= 1 + f <= sqrt 2; error 2^-27.92.
inline constexpr float kLog[] = {-5.00000000e-01f, 3.33333075e-01f, -2.49999747e-01f, 2.00024113e-01f, -1.66700751e-01f, 1.42161161e-01f, -1.23690963e-01f, 1.18715256e-01f, -1.18617326e-01f, 6.99815527e-02f};

/// expm1 2r = 2r + r^2 P(r), -ln 2 / 4 <= r <= 0.28; error 2^-28.75.
inline constexpr float kExp2xM1[] = {2.00000000e+00f, 1.33333468e+00f, 6.66666329e-01f, 2.66544372e-01f, 8.90684947e-02f, 2.80022752e-02f};

/// erf x = x + x P(x^2), |x| <= 1; error 2^-28.64.
inline constexpr float kErf[] = {1.28379166e-01f, -3.76126260e-01f, 1.12835787e-01f, -2.68533509e-02f, 5.18717198e-03f, -7.99797010e-04f, 7.80737973e-05f};

/// erf x = 1 - P(x)^8, 1 <= x <= 3.93; error 2^-27.27.
inline constexpr float kErfcRoot[] = {1.00037289e+00f, -1.42934665e-01f, -6.55389652e-02f, -7.04359962e-03f, 1.02486126e-02f, -1.49834063e-03f, -4.15245231e-05f, 1.57838276e-05f};

/// sin r = r + r s P(s), s = r^2, |r| <= pi/4; error 2^-27.84.
inline constexpr float kSin[] = {-1.66666538e-01f, 8.33210628e-03f, -1.95078828e-04f};

/// cos r = 1 - s/2 + s^2 P(s), s = r^2, |r| <= pi/4; error 2^-32.88.
inline constexpr float kCos[] = {4.16666456e-02f, -1.38873048e-03f, 2.44314251e-05f};

/// asin x = x + x s P(s), s = x^2, |x| <= 1/2; error 2^-31.61.
inline constexpr float kAsin[] = {1.66666597e-01f, 7.50052184e-02f, 4.45133820e-02f, 3.18387859e-02f, 1.43175349e-02f, 3.76898684e-02f};

/// atan x = x + x s P(s), s = x^2, |x| <= 1; error 2^-28.14.
inline constexpr float kAtan[] = {-3.33333284e-01f, 1.99997157e-01f, -1.42803431e-01f, 1.10612325e-01f, -8.82145762e-02f, 6.76363707e-02f, -4.49830554e-02f, 2.27774158e-02f, -7.42525375e-03f, 1.13449700e-03f};

/// log2(1 + f) = f P(f), 1/sqrt 2 <= 1 + f <= sqrt 2, in f64; error 2^-35.36.
inline constexpr double kWideLog2[] = {1.4426950408687016e+00, -7.2134752136094216e-01, 4.8089836099806321e-01, -3.6067357382749898e-01, 2.8853732046683439e-01, -2.4045899873742924e-01, 2.0617692868593840e-01, -1.8016109917496242e-01, 1.5866170628428633e-01, -1.4464245473842771e-01, 1.4657318855615911e-01, -1.3698021094343074e-01, 6.7904402849239417e-02};

/// pi/2 as a sum, accurate to 2^-76.33.
inline constexpr float kHalfPi[] = {1.57079637e+00f, -4.37113883e-08f, -1.71512451e-15f};

/// The bits of 2/pi, 32 a word, from those above the binary point.
inline constexpr unsigned kTwoOverPi[] = {0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB};

} // namespace tilewright::vecmath

#endif

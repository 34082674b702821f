#ifndef _MATH_H
#define _MATH_H
double sin(double x);
float sinf(float x);
double cos(double x);
float cosf(float x);
double tan(double x);
float tanf(float x);
double asin(double x);
float asinf(float x);
double acos(double x);
float acosf(float x);
double atan(double x);
float atanf(float x);
double sinh(double x);
float sinhf(float x);
double cosh(double x);
float coshf(float x);
double tanh(double x);
float tanhf(float x);
double exp(double x);
float expf(float x);
double log(double x);
float logf(float x);
double log10(double x);
float log10f(float x);
double log2(double x);
float log2f(float x);
double log1p(double x);
float log1pf(float x);
double expm1(double x);
float expm1f(float x);
double exp2(double x);
float exp2f(float x);
double sqrt(double x);
float sqrtf(float x);
double cbrt(double x);
float cbrtf(float x);
double fabs(double x);
float fabsf(float x);
double floor(double x);
float floorf(float x);
double ceil(double x);
float ceilf(float x);
double trunc(double x);
float truncf(float x);
double round(double x);
float roundf(float x);
double atan2(double x, double y);
float atan2f(float x, float y);
double pow(double x, double y);
float powf(float x, float y);
double fmod(double x, double y);
float fmodf(float x, float y);
double hypot(double x, double y);
float hypotf(float x, float y);
double fmax(double x, double y);
float fmaxf(float x, float y);
double fmin(double x, double y);
float fminf(float x, float y);
double acosh(double x);
float acoshf(float x);
double asinh(double x);
float asinhf(float x);
double atanh(double x);
float atanhf(float x);
double rint(double x);
float rintf(float x);
double nearbyint(double x);
float nearbyintf(float x);
double erf(double x);
float erff(float x);
double erfc(double x);
float erfcf(float x);
double tgamma(double x);
float tgammaf(float x);
double lgamma(double x);
float lgammaf(float x);
double logb(double x);
float logbf(float x);
double copysign(double x, double y);
float copysignf(float x, float y);
double nextafter(double x, double y);
float nextafterf(float x, float y);
double remainder(double x, double y);
float remainderf(float x, float y);
double fdim(double x, double y);
float fdimf(float x, float y);
double fma(double x, double y, double z);
float fmaf(float x, float y, float z);
double ldexp(double x, int n);
double scalbn(double x, int n);
double frexp(double x, int *n);
double modf(double x, double *whole);
int ilogb(double x);
long lround(double x);
long lrint(double x);
long long llround(double x);
long long llrint(double x);
int __upc_isfinite(double x);
int __upc_signbit(double x);
int __upc_isnan(double x);
int __upc_isinf(double x);
#define sinl sin
#define cosl cos
#define tanl tan
#define asinl asin
#define acosl acos
#define atanl atan
#define sinhl sinh
#define coshl cosh
#define tanhl tanh
#define expl exp
#define logl log
#define log10l log10
#define sqrtl sqrt
#define fabsl fabs
#define floorl floor
#define ceill ceil
#define powl pow
#define fmodl fmod
#define atan2l atan2
#define roundl round
#define fminl fmin
#define fmaxl fmax
#define isnan(x) __upc_isnan(x)
#define isinf(x) __upc_isinf(x)
#define isfinite(x) __upc_isfinite(x)
#define signbit(x) __upc_signbit(x)
#define HUGE_VAL (1e308 * 10)
#define INFINITY (1e30f * 1e30f)
#define NAN (INFINITY - INFINITY)
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_SQRT1_2 0.70710678118654752440
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
typedef float float_t;
typedef double double_t;
#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define MATH_ERRNO 1
#define MATH_ERREXCEPT 2
#define math_errhandling MATH_ERREXCEPT
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN 2147483647
#define HUGE_VALF INFINITY
#define HUGE_VALL HUGE_VAL
#define MAXFLOAT 3.40282347e+38F
int __upc_fpclassify(double x);
#define fpclassify(x) __upc_fpclassify(x)
#define isnormal(x) (__upc_fpclassify(x) == FP_NORMAL)
#define isunordered(x, y) (isnan(x) || isnan(y))
#define isgreater(x, y) ((x) > (y))
#define isgreaterequal(x, y) ((x) >= (y))
#define isless(x, y) ((x) < (y))
#define islessequal(x, y) ((x) <= (y))
#define islessgreater(x, y) ((x) < (y) || (x) > (y))
#define finite(x) __upc_isfinite(x)
double j0(double x);
double j1(double x);
double y0(double x);
double y1(double x);
double nan(const char *tag);
#define cbrtl cbrt
#define hypotl hypot
#define truncl trunc
#define rintl rint
#define nearbyintl nearbyint
#define lroundl lround
#define lrintl lrint
#define llroundl llround
#define llrintl llrint
#define lroundf lround
#define lrintf lrint
#define llroundf llround
#define llrintf llrint
#define log2l log2
#define log1pl log1p
#define expm1l expm1
#define exp2l exp2
#define copysignl copysign
#define fdiml fdim
#define fmal fma
#define ldexpl ldexp
#define frexpl frexp
#define modfl modf
#define scalbnl scalbn
#define scalbln(x, n) scalbn(x, (int)(n))
#define ilogbl ilogb
#define ilogbf ilogb
#define logbl logb
#define erfl erf
#define erfcl erfc
#define lgammal lgamma
#define tgammal tgamma
#define remainderl remainder
#define nextafterl nextafter
#define acoshl acosh
#define asinhl asinh
#define atanhl atanh
#define ldexpf(x, n) ((float)ldexp(x, n))
#define scalbnf(x, n) ((float)scalbn(x, n))
#define frexpf(x, n) ((float)frexp(x, n))
static inline float modff(float x, float *whole) {
  double w, f = modf(x, &w);
  *whole = (float)w;
  return (float)f;
}
static inline double remquo(double x, double y, int *n) {
  double part = fmod(x, 8 * y), rest = remainder(part, y);
  *n = (int)rint((part - rest) / y) % 8;
  return rest;
}
static inline float remquof(float x, float y, int *n) { return (float)remquo(x, y, n); }
static inline float nexttowardf(float x, double y) {
  return x < y ? nextafterf(x, HUGE_VALF) : x > y ? nextafterf(x, -HUGE_VALF) : (float)y;
}
#define nexttoward nextafter
#define nexttowardl nextafter
#define remquol remquo
#define nanf(tag) ((float)nan(tag))
#define nanl nan
#endif

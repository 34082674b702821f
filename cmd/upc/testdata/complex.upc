#include <complex.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
/* Complex numbers, against gcc; and a transform of an array that lies on all threads. */
#ifdef __UPC__
#include <upc_relaxed.h>
#else
#define shared
#define upc_barrier
#define THREADS 1
#define MYTHREAD 0
#endif
#define N 16
typedef double complex dcomplex;
struct wave { char name; float complex small; dcomplex amplitude[2]; int n; };
shared dcomplex all[N * THREADS];
shared struct wave waves[THREADS];
dcomplex unit = 1.0 + 2.0 * I, table[3] = {1, I, -2.5 * I};
float _Complex single = 3.0f - 0.5f * I;
static const double complex root = CMPLX(0.5, -0.25);
static void show(const char *what, double complex z) {
  /* A last digit may differ, and be that of a zero. */
  double re = creal(z), im = cimag(z);
  if (fabs(re) < 1e-12) re = 0;
  if (fabs(im) < 1e-12) im = 0;
  printf("%s %.9g %.9g\n", what, re, im);
}
static void singles(const char *what, float complex z) {
  float re = crealf(z), im = cimagf(z);
  printf("%s %.4g %.4g\n", what, fabsf(re) < 1e-5f ? 0 : re, fabsf(im) < 1e-5f ? 0 : im);
}
static dcomplex total(int n, ...) {
  va_list ap;
  dcomplex sum = 0;
  va_start(ap, n);
  while (n-- > 0)
    sum += va_arg(ap, double complex);
  va_end(ap);
  return sum;
}
static dcomplex power(dcomplex z, int n) { return n == 0 ? 1 : z * power(z, n - 1); }
static void arithmetic(void) {
  dcomplex a = 3 + 4 * I, b = 1 - I, c, *p = &c;
  float complex f = 1.5f + I, g;
  double d = 2;
  int i = 3;
  show("sums", a + b); show("and", a - b); show("products", a * b); show("quotients", a / b);
  show("real", a * d + i); show("before", d - a); show("over", d / a); show("by", a / d - 1); show("neg", -a + +b);
  c = a; c += b; show("+=", c); c -= 1; show("-=", c); c *= I; show("*=", c); c /= a; show("/=", c); c *= d; show("by real", c); *p /= i; show("through", *p);
  d += a; show("real +=", d); d *= b; show("real *=", d); i *= 1.5 + I; show("int *=", i);
  printf("%d %d %d %d %d %d\n", a == b, a != b, a == 3 + 4 * I, !a, a && b, (_Bool)(a - a) || (int)(4.7 + I) == 4);
  if (c - c) printf("never\n");
  c = d > 100 ? a : b; show("chosen", c); c = d > 0 ? 1 : a; show("chosen real", c); c = (a, b); show("comma", c);
  g = f * f; singles("float", g); g = f / 2 + a; singles("and double", g); g *= 2; singles("twice", g); g = f + single; singles("static", g); f /= g; singles("divided", f); singles("real minus", 1 - f);
  show("widened", f); show("statics", unit + table[1] * table[2] + root);
  show("parts", creal(a) + cimag(b) * I); show("imaginary", 2.5i + 1);
  __real__ c = 9; __imag__ c += 2; show("assigned", c); printf("%g %g %g %g\n", __real__ (a * b), __imag__ (a * b), __real__ d, creal(__imag__ unit));
  printf("%d %d %d\n", (int)sizeof(dcomplex), (int)sizeof(float complex), (int)sizeof(struct wave));
  show("arguments", total(3, a, b, 1.0 + I)); show("power", power(b, 5));
  show("zero", (1 + I) / (CMPLX(0, 0) + 2)); printf("%g %g\n", cimag(conj(CMPLX(1, 0.0))), creal(csqrt(CMPLX(-4, -0.0))));
}
static void functions(void) {
  dcomplex z = 0.3 - 0.7 * I, w = -1.5 + 0.2 * I;
  float complex f = 0.3f + 0.4f * I;
  dcomplex (*fn[])(dcomplex) = {csin, conj, csqrt};
  int i;
  printf("%.9g %.9g %.9g %.4g %.4g\n", cabs(z), carg(w), cabs(3 + 4 * I), cabsf(f), cargf(f));
  show("cexp", cexp(z)); show("clog", clog(w)); show("csqrt", csqrt(w)); show("cpow", cpow(z, w)); show("conj", conj(z)); show("cproj", cproj(w));
  show("csin", csin(z)); show("ccos", ccos(z)); show("ctan", ctan(w)); show("casin", casin(z)); show("cacos", cacos(z)); show("catan", catan(z));
  show("csinh", csinh(w)); show("ccosh", ccosh(w)); show("ctanh", ctanh(z)); show("casinh", casinh(z)); show("cacosh", cacosh(w)); show("catanh", catanh(z));
  singles("cexpf", cexpf(f)); singles("csqrtf", csqrtf(f)); singles("cpowf", cpowf(f, f)); singles("conjf", conjf(f)); singles("clogf", clogf(f));
  for (i = 0; i < 3; i++) show("pointer", fn[i](z));
  show("pi", cexp(I * M_PI)); show("root of -1", csqrt(-1));
}
static void transform(dcomplex *x, int n, int sign) {
  dcomplex *even = malloc(n * sizeof *even), *odd = even + n / 2;
  int k;
  if (n > 1) {
    for (k = 0; k < n / 2; k++) { even[k] = x[2 * k]; odd[k] = x[2 * k + 1]; }
    transform(even, n / 2, sign);
    transform(odd, n / 2, sign);
    for (k = 0; k < n / 2; k++) {
      dcomplex w = cexp(sign * 2 * M_PI * I * k / n) * odd[k];
      x[k] = even[k] + w;
      x[k + n / 2] = even[k] - w;
    }
  }
  free(even);
}
#include <tgmath.h>
static void generic(void) {
  dcomplex z = 0.5 + I;
  float complex f = 0.25f;
  show("sqrt", sqrt(z)); show("exp", exp(z)); show("pow", pow(z, 2)); show("sin", sin(f)); show("conj", conj(z)); show("log", log(2.0 + 0 * I));
  printf("%.6g %.6g %.6g %.6g %d\n", fabs(z), carg(z), sqrt(2.0), creal(z), (int)sizeof(exp(f)));
}
int main(void) {
  dcomplex x[N], sum = 0;
  struct wave w = {'w', 1 - I, {I, 2}, 7}, v;
  int i, wrong = 0;
  for (i = 0; i < N; i++)
    all[i * THREADS + MYTHREAD] = i % 5 + (i * i % 7) * I;
  waves[MYTHREAD] = w;
  waves[MYTHREAD].amplitude[1] *= 1 + I;
  waves[MYTHREAD].small += 0.5f;
  upc_barrier;
  all[MYTHREAD] += 1 - I;
  all[MYTHREAD + THREADS] *= 2;
  __imag__ all[MYTHREAD] -= 0.5;
  for (i = 0; i < N; i++)
    sum += x[i] = all[i * THREADS + MYTHREAD];
  v = waves[(MYTHREAD + 1) % THREADS];
  show("sum", sum);
  transform(x, N, -1);
  show("first", x[0]); show("third", x[2]);
  transform(x, N, 1);
  for (i = 0; i < N; i++)
    wrong += cabs(x[i] / N - all[i * THREADS + MYTHREAD]) > 1e-12;
  show("wave", v.amplitude[1] + v.amplitude[0]); singles("small", v.small);
  arithmetic();
  functions();
  generic();
  printf("transform: %d wrong\n", wrong);
  return wrong;
}

// A Fourier transform of N * N points as N transforms of columns and N of rows, between which
// the matrix is transposed: each thread packs a block for each other one, which fetches it.
//
//	fft [N]    a power of two
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

typedef struct { double re, im; } cplx;
typedef shared [] cplx *block_t;

/* The threads' rows, and what they have packed for each other. */
shared block_t packed[THREADS];
shared double worst[THREADS];

static int n, low, high;
static cplx *rows; /* rows low to high - 1 */

static int first_row(int t) { return n * t / THREADS; }

static cplx mul(cplx a, cplx b) {
  cplx c = { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
  return c;
}
static cplx plus(cplx a, cplx b) { return (cplx){ a.re + b.re, a.im + b.im }; }
static cplx minus(cplx a, cplx b) { return (cplx){ .im = a.im - b.im, .re = a.re - b.re }; }
static cplx unit(double turns) { return (cplx){ cos(2 * M_PI * turns), sin(2 * M_PI * turns) }; }

/* Transforms one row in place; sign is -1, or 1 for the inverse without its factor. */
static void row_fft(cplx *a, int sign) {
  int i, j, bit, half, k;
  for (i = 1, j = 0; i < n; i++) { /* bits in reverse */
    for (bit = n >> 1; j & bit; bit >>= 1)
      j ^= bit;
    j ^= bit;
    if (i < j) {
      cplx t = a[i];
      a[i] = a[j];
      a[j] = t;
    }
  }
  for (half = 1; half < n; half *= 2)
    for (k = 0; k < half; k++) {
      cplx w = unit(sign * k / (2.0 * half));
      for (i = k; i < n; i += 2 * half) {
        cplx u = a[i], v = mul(a[i + half], w);
        a[i] = plus(u, v);
        a[i + half] = minus(u, v);
      }
    }
}

/* Transposes the matrix. The block for thread t has the columns that are its rows, one after
 * the other. */
static void transpose(void) {
  cplx *out = (cplx *)packed[MYTHREAD], *in;
  int t, i, j;
  for (t = 0; t < THREADS; t++) {
    cplx *p = out + (high - low) * first_row(t);
    for (j = first_row(t); j < first_row(t + 1); j++)
      for (i = low; i < high; i++)
        *p++ = rows[(i - low) * n + j];
  }
  upc_barrier;
  in = malloc(sizeof(cplx) * n * (high - low + 1));
  for (i = 0; i < THREADS; i++) {
    int width;
    t = (MYTHREAD + i) % THREADS; /* not all from the same thread at once */
    width = first_row(t + 1) - first_row(t);
    upc_memget(in, packed[t] + width * low, width * (high - low) * sizeof *in);
    for (j = 0; j < high - low; j++) {
      int k;
      for (k = 0; k < width; k++)
        rows[j * n + first_row(t) + k] = in[j * width + k];
    }
  }
  free(in);
  upc_barrier;
}

/* Point j * n + i of the signal is at row i, column j afterwards transposed: the result is in
 * order again. */
static void transform(int sign) {
  int i, j;
  transpose();
  for (i = low; i < high; i++) {
    row_fft(&rows[(i - low) * n], sign);
    for (j = 0; j < n; j++)
      rows[(i - low) * n + j] = mul(rows[(i - low) * n + j], unit((double)sign * i * j / ((double)n * n)));
  }
  transpose();
  for (i = low; i < high; i++)
    row_fft(&rows[(i - low) * n], sign);
  transpose();
}

static cplx signal(long k) {
  return (cplx){ (k * 37 % 101) / 101.0 - 0.5, (k * k % 89) / 89.0 };
}

/* The largest value of all threads. */
static double largest(double mine) {
  double m = 0;
  int t;
  worst[MYTHREAD] = mine;
  upc_barrier;
  for (t = 0; t < THREADS; t++)
    m = fmax(m, worst[t]);
  upc_barrier;
  return m;
}

static double distance(cplx a, cplx b) { return hypot(a.re - b.re, a.im - b.im); }

int main(int argc, char **argv) {
  int i, j;
  double direct = 0, back = 0;
  n = argc > 1 ? atoi(argv[1]) : 32;
  low = first_row(MYTHREAD);
  high = first_row(MYTHREAD + 1);
  rows = malloc(n * (high - low + 1) * sizeof(cplx));
  packed[MYTHREAD] = upc_alloc(n * (high - low + 1) * sizeof(cplx));
  for (i = low; i < high; i++)
    for (j = 0; j < n; j++)
      rows[(i - low) * n + j] = signal((long)i * n + j);
  upc_barrier;
  transform(-1);

  /* Some frequencies by their definition. */
  for (i = low; i < high; i += 5) {
    long f = (long)i * n + i * 7 % n, k, all = (long)n * n;
    cplx s = { 0 };
    for (k = 0; k < all; k++)
      s = plus(s, mul(signal(k), unit(-(double)(f * k % all) / all)));
    direct = fmax(direct, distance(s, rows[(i - low) * n + i * 7 % n]));
  }
  transform(1);
  for (i = low; i < high; i++)
    for (j = 0; j < n; j++) {
      cplx v = rows[(i - low) * n + j];
      v.re /= (double)n * n, v.im /= (double)n * n;
      back = fmax(back, distance(v, signal((long)i * n + j)));
    }
  direct = largest(direct);
  back = largest(back);
  if (MYTHREAD == 0)
    printf("fft: %d points, by definition %s, back again %s\n", n * n, direct < 1e-9 * n ? "right" : "wrong", back < 1e-12 * n ? "right" : "wrong");
  upc_free(packed[MYTHREAD]);
  free(rows);
  return 0;
}

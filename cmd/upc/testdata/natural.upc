/* Loops that count in unsigned numbers, which wrap round, or compare with them, and loops whose condition counts. Without UPC it is C:
   gcc -O2 -x c natural.upc prints the same. */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef __UPC__
#include <upc_relaxed.h>
#define EACH(a, b, c, d) upc_forall (a; b; c; d)
#else
#define MYTHREAD 0
#define THREADS 1
#define shared
#define EACH(a, b, c, d) for (a; b; c)
#endif

#define N 48
#define TOP 0xFFFFFFF0u
typedef unsigned long ulong;

static int part[N], more[N], *two[2] = {part, more}, **u = two;
#ifdef __UPC__
static shared [] int here[N], *p = here;
static shared [N] int rows[2 * THREADS][N];
static shared [4] int runs[N * THREADS];
static shared int cyclic[N * THREADS];
#else
static int here[N], *p = here, rows[2][N], runs[N], cyclic[N];
#endif
static unsigned none, few = 9, high = TOP, last = UINT_MAX;
static size_t zero, big = SIZE_MAX, far = SIZE_MAX - 6, eight = 8;
static long many = 1L << 33, less = -5;
static int minus = -3;
static unsigned char byte = 255;
static ulong out;

static void add(ulong v) { out = out * 31 + v; }
static void show(const char *what) {
  for (int i = 0; i < N; i++)
    add(part[i] + more[i] * 3 + here[i] * 5 + rows[1][i] * 7 + runs[i] * 11 + cyclic[i] * 13);
  printf("%s %lx\n", what, out);
}

/* What counts. */
static void plain(unsigned n, size_t m) {
  unsigned i;
  for (i = 1; i < n; i++)
    u[1][i] += u[0][i - 1] + part[i] - here[i + 1] + rows[1][i];
  add(i);
  size_t j;
  for (j = 0; j <= m; ++j)
    u[1][j + 2] += u[0][2 * j + 1] + p[j] + runs[j + 3] - cyclic[j];
  add(j);
  for (int k = 0; k < n; k += 1)
    u[0][k] += here[k];
  for (int k = 2; k <= m; k++)
    runs[k] += u[1][k] + rows[0][k];
  for (ulong k = MYTHREAD; k < m + 1; k++)
    cyclic[k] += here[k + 7];
  for (i = 0; i <= byte - 220u && i < 30; i++)
    add(u[0][i]);
  for (i = 0; i <= byte; i++)
    add(here[i % 8] + u[1][i / 8]);
  while (i-- > 240)
    add(u[1][i - 230]);
}
static void every(unsigned n, size_t m) {
  unsigned i;
  size_t j;
  EACH(i = 1, i < n, i++, &runs[i]) runs[i] += rows[0][i] + here[i - 1];
  add(i);
  EACH(j = 0, j < m, j++, &cyclic[j]) cyclic[j] += rows[0][j + 1];
  add(j);
  EACH(j = 0, j <= m, j++, j) cyclic[j] -= rows[1][j];
  EACH(i = 5, i < none, i++, i) add(1);
  add(i);
  EACH(i = 7, i < (long)minus, i++, i) add(1);
  add(i);
  EACH(j = 9, j < zero, j++, &runs[j]) add(1);
  add(j);
  int s;
  EACH(s = minus, (unsigned)s < (long)n, s++, s) add(1);
  EACH(s = minus, (unsigned)s < (long)n, s++, &cyclic[s + 3]) cyclic[s + 3]++;
  add(s);
  EACH(long k = 1L << 40, k < (1L << 40) + n, k++, &runs[k - (1L << 40)]) runs[k - (1L << 40)] ^= 5;
  EACH(int k = 3, k < n, k++, &runs[k - 1]) runs[k - 1] ^= k;
  EACH(unsigned i = TOP, i < UINT_MAX, i++, &runs[i + 25]) runs[i + 25] += rows[1][i + 26];
}

/* Sums that wrap round. */
static void wrapped(unsigned from) {
  for (unsigned i = TOP; i < UINT_MAX; i++)
    part[i + 24] += more[i + 0x11] + u[1][i + 20];
  for (unsigned i = TOP; i < UINT_MAX; i++)
    here[i + 24] += rows[1][i + 18] + runs[i + 19] + cyclic[i + 30];
  for (unsigned i = from; i < last; i++)
    u[0][i + 0x15] += p[i - TOP] + u[1][i + 0x20];
  for (unsigned i = 0x80000001u; i < 0x80000010u; i++)
    u[1][2 * i] += here[i * 2] + u[0][i + i];
  for (unsigned i = from; i < last; i++)
    runs[i + 20] += u[1][1 + (i - TOP)] + u[0][3 * (i + 17)];
  for (size_t i = 7; i < 20; i++)
    u[0][i + far] += here[i - 7] + runs[i + far] + part[i - eight + 1];
  for (size_t i = far; i < big; i++)
    u[1][i + 9] += part[i + 8] + here[i - far];
  for (size_t i = SIZE_MAX - 8; i < SIZE_MAX; i++)
    part[i + 9] += u[1][i + 12] + rows[0][i + 20];
}

/* Beginnings and bounds without a number of iterations that is a natural one. */
/* The parameters are variables that no store can change. */
static void odd(unsigned none, unsigned few, unsigned last, size_t zero, size_t big, size_t eight, long many, long less, int minus) {
  size_t i;
  unsigned k, steps = 0;
  for (int s = minus; (unsigned)s < (long)few; s++)
    u[0][s + 5] += here[s + 5] + 7;
  for (i = big; i < eight; i++)
    u[0][i] = 1;
  add(i);
  for (i = -1; i < eight; i++)
    here[i] = part[i] = 2;
  add(i);
  for (i = minus; i < eight; i++)
    u[0][i] = 3;
  i = big - 2;
  for (k = 0; i < big; i++)
    u[0][i + 3] += here[i + 4] + ++k;
  for (int j = minus; j < few; j++)
    u[0][j] = part[j + 3] = 4;
  for (int j = minus; j < eight; j++)
    here[j] = 5;
  for (int j = minus; j < UINT_MAX; j++)
    u[0][j + 3] += part[j + 4] + here[j + 5];
  for (int j = -3; j < big; j++)
    u[1][j + 3] += here[j + 4] + runs[j + 5];
  for (i = LONG_MAX - 2ul; i < LONG_MAX + 3ul; i++)
    u[0][i - (LONG_MAX - 2ul)] += 6 + here[i - (LONG_MAX - 3ul)];
  add(i);
  for (k = UINT_MAX - 3; k < many; k++) {
    if (k == 3)
      break;
    u[1][k % 8] += u[0][k & 7] + k % 3 + ++steps;
    if (k < 9)
      u[0][k] += here[k];
  }
  add(k), add(steps);
  for (k = UINT_MAX - 3; k <= last; k++) {
    if (k == 2)
      break;
    u[1][k % 8] += here[k & 7] + ++steps;
    if (k < 9)
      u[0][k] += 9;
  }
  add(k), add(steps);
  for (k = UINT_MAX; k < (size_t)minus; k++) {
    if (k < 9)
      u[0][k] += here[k];
    if (k == 6)
      break;
  }
  for (k = 5; k < eight - 9; k++) {
    if (k == 12)
      break;
    u[0][k] += here[k];
  }
  add(k);
  for (k = 5; k < less; k++)
    u[0][k] = 7;
  add(k);
  for (i = 0; i < zero - 1; i++)
    if ((u[1][i] += here[i] + 1) > 90 || i == 11)
      break;
  add(i);
  for (i = 0; i <= big; i++)
    if (p[i] + u[0][i] > 70 || i == 13)
      break;
  add(i);
  for (i = 3; i < SIZE_MAX; i++) {
    runs[i] += 1;
    if (i == 17)
      break;
  }
  for (i = 3; i < minus; i++) {
    if (i == 19)
      break;
    u[1][i + 1] += u[0][i - 1];
  }
  add(i);
  for (k = 0; k < none - 1; k++)
    if ((u[0][k] ^= k) > 60 || k == 9)
      break;
  add(k);
}

/* Conditions that count, and bodies before conditions. */
static void counts(unsigned n, int **null) {
  unsigned i = n;
  while (i-- > 0)
    u[1][i] += u[0][i + 1] * 2;
  add(i);
  while (i++ < 4) {
    if (i == 2)
      continue;
    u[1][i] -= u[0][i];
  }
  for (i = n; --i;)
    u[0][i] += u[1][i - 1];
  for (i = n; i-- > 3;) {
    if (u[0][i] % 5 == 0)
      continue;
    if (i == 4)
      break;
    u[1][i] ^= i;
  }
  add(i);
  for (i = 9; i-- > 3; n++)
    u[0][n & 7] += u[1][i];
  i = 0;
  while (i-- > 0)
    null[1][i] = 1;
  for (i = 5; i++ < 5;)
    null[0][i] = 1;
  do {
    u[1][i] += u[0][i];
    if (i % 3 == 0)
      continue;
    u[0][i] += part[i];
  } while (++i < 12);
  do
    u[1][i] += 3;
  while (i-- > 5 && u[0][i] != 7);
  add(i);
  size_t j = 0;
  do {
    if (j == 4)
      break;
    u[0][j] -= u[1][j + 1];
  } while (j++ < 30);
  add(j);
}

/* Rows that a condition, or what stands behind it, changes. */
static void changes(void) {
  int k = 0, i = 9;
  while (i-- > 0 && (u[0] = i & 1 ? more : part))
    u[0][i] += i;
  i = 9;
  do {
    u[1][i] += i;
    u[1] = i & 1 ? more : part;
  } while (--i);
  i = 9;
  while (k = i & 1, i-- > 0)
    u[k][i] += 2;
  u[0] = part, u[1] = more;
}

int main(void) {
  if (MYTHREAD == 0) {
    for (int i = 0; i < N; i++) {
      part[i] = i * 7 % 31, more[i] = i * 5 % 29, here[i] = i * 3 % 23, rows[0][i] = i * 11 % 37;
      rows[1][i] = i * 13 % 41, runs[i] = i * 9 % 43, cyclic[i] = i * 8 % 47;
    }
    plain(20, 11), show("plain");
    plain(0, 2), show("none");
#ifdef __UPC__
  }
  upc_barrier;
  every(few * 2, eight * 2);
  upc_barrier;
  if (MYTHREAD == 0) {
    show("every");
#else
    every(few * 2, eight * 2), show("every");
#endif
    wrapped(high), show("wrapped");
    odd(none, few, last, zero, big, eight, many, less, minus), show("odd");
    counts(14, NULL), show("counts");
    changes(), show("changes");
  }
  return 0;
}

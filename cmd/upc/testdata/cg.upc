// The conjugate gradient benchmark of the NAS Parallel Benchmarks (RNR-94-007, 2.3): the
// smallest eigenvalue of a sparse symmetric matrix by inverse iteration, whose systems are
// solved by 25 steps of conjugate gradients. Rows are in blocks at the threads; the vector that
// a product needs is fetched whole.
//
//	cg [S|W]    two iterations of class S by default
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#define STEPS 25
#define RCOND 0.1
#define MASK ((1ul << 46) - 1)

static const struct class {
  const char *name;
  int n, nonzero, iterations;
  double shift, zeta;
} classes[] = {
  { "S", 1400, 7, 15, 10.0, 8.5971775078648 },
  { "W", 7000, 8, 15, 12.0, 10.362595087124 },
};
static const struct class *class = &classes[0];

/* The thread's rows, which are compressed: row r has places start[r] to start[r + 1] - 1. */
static int n, low, high, *start, *column;
static double *value;

typedef shared [] double *part_t;
shared part_t direction[THREADS]; /* the vector of which all need all */
shared double partial[2][THREADS];

/* ---- The matrix ---- */

static unsigned long seed = 314159265ul;

static double uniform(void) {
  seed = seed * 1220703125ul & MASK;
  return seed * 0x1p-46;
}

/* A sparse vector of random numbers at random places, of which place i is 0.5. */
static int sparse(int count, int i, int *at, double *v) {
  int power = 1, have = 0, k;
  while (power < n)
    power <<= 1;
  while (have < count) {
    double x = uniform();
    int p = (int)(power * uniform());
    if (p >= n)
      continue;
    for (k = 0; k < have && at[k] != p; k++)
      ;
    if (k == have)
      at[have] = p, v[have++] = x;
  }
  for (k = 0; k < have; k++)
    if (at[k] == i) {
      v[k] = 0.5;
      return have;
    }
  at[have] = i;
  v[have++] = 0.5;
  return have;
}

struct entry {
  int column;
  double value;
  struct entry *next;
};

/* Adds v to an entry of a row, whose columns are in order. */
static void add(struct entry **row, int col, double v) {
  struct entry *e;
  while (*row && (*row)->column < col)
    row = &(*row)->next;
  if (*row && (*row)->column == col) {
    (*row)->value += v;
    return;
  }
  e = malloc(sizeof(struct entry));
  e->column = col, e->value = v, e->next = *row;
  *row = e;
}

/* The sum of the vectors' outer products with weights from 1 to RCOND, of which each thread
 * keeps its rows. */
static void make(void) {
  double weight = 1, ratio = pow(RCOND, 1.0 / n), v[16];
  struct entry **rows = calloc(high - low + 1, sizeof *rows), *e, *next;
  int at[16], i, j, k, count, places = 0;
  for (i = 0; i < n; i++, weight *= ratio) {
    count = sparse(class->nonzero, i, at, v);
    for (j = 0; j < count; j++) {
      if (at[j] < low || at[j] >= high)
        continue;
      for (k = 0; k < count; k++)
        add(&rows[at[j] - low], at[k], v[k] * (weight * v[j]) + (at[j] == i && at[k] == i ? RCOND - class->shift : 0));
    }
  }
  for (i = 0; i < high - low; i++)
    for (e = rows[i]; e; e = e->next)
      places++;
  start = malloc((high - low + 1) * sizeof *start);
  column = malloc((places + 1) * sizeof *column);
  value = malloc((places + 1) * sizeof *value);
  for (i = k = 0; i < high - low; i++) {
    start[i] = k;
    for (e = rows[i]; e; e = next) {
      next = e->next;
      column[k] = e->column;
      value[k++] = e->value;
      free(e);
    }
  }
  start[i] = k;
  free(rows);
}

/* ---- Vectors ---- */

/* The sum over all threads, to all; the threads alternate between two arrays, so that one
 * barrier is enough. */
static double sum(double mine) {
  static int which;
  double s = 0;
  int t;
  which = !which;
  partial[which][MYTHREAD] = mine;
  upc_barrier;
  for (t = 0; t < THREADS; t++)
    s += partial[which][t];
  return s;
}

static double dot(const double *a, const double *b) {
  double s = 0;
  int i;
  for (i = 0; i < high - low; i++)
    s += a[i] * b[i];
  return sum(s);
}

static int first_row(int t) { return (long)n * t / THREADS; }

/* q = A p, where p is in the threads' parts. */
static void product(double *q) {
  static double *whole;
  int t, i, k;
  if (!whole)
    whole = malloc(n * sizeof *whole);
  upc_barrier;
  for (t = 0; t < THREADS; t++)
    upc_memget(whole + first_row(t), direction[t], (first_row(t + 1) - first_row(t)) * sizeof(double));
  for (i = 0; i < high - low; i++) {
    double s = 0;
    for (k = start[i]; k < start[i + 1]; k++)
      s += value[k] * whole[column[k]];
    q[i] = s;
  }
  upc_barrier;
}

/* Solves A z = x, and returns the norm of what is left. */
static double solve(double *x, double *z) {
  int i, step, rows = high - low;
  double *p = (double *)direction[MYTHREAD];
  double *r = malloc(rows * sizeof *r + 1), *q = malloc(rows * sizeof *q + 1), rho, old, alpha, d;
  memset(z, 0, rows * sizeof *z);
  memcpy(r, x, rows * sizeof *r);
  memcpy(p, x, rows * sizeof *p);
  rho = dot(r, r);
  for (step = 0; step < STEPS; step++) {
    product(q);
    alpha = rho / dot(p, q);
    for (i = 0; i < rows; i++) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    old = rho;
    rho = dot(r, r);
    for (i = 0; i < rows; i++)
      p[i] = r[i] + rho / old * p[i];
  }
  memcpy(p, z, rows * sizeof *p);
  product(r);
  for (i = 0, d = 0; i < rows; i++)
    d += (x[i] - r[i]) * (x[i] - r[i]);
  free(r);
  free(q);
  return sqrt(sum(d));
}

int main(int argc, char **argv) {
  int i, it, iterations;
  double *x, *z, zeta = 0, norm, left = 0;
  for (i = 0; argc > 1 && i < (int)(sizeof classes / sizeof(struct class)); i++)
    if (strcmp(argv[1], classes[i].name) == 0)
      class = classes + i;
  iterations = argc > 1 ? class->iterations : 2;
  n = class->n;
  low = first_row(MYTHREAD);
  high = first_row(MYTHREAD + 1);
  uniform(); /* the benchmark's first number is not used */
  make();
  x = malloc((high - low) * sizeof *x + 1);
  z = malloc((high - low) * sizeof *z + 1);
  direction[MYTHREAD] = upc_alloc((high - low) * sizeof(double) + 1);
  for (i = 0; i < high - low; i++)
    x[i] = 1;
  for (it = 1; it <= iterations; it++) {
    left = solve(x, z);
    zeta = class->shift + 1 / dot(x, z);
    norm = 1 / sqrt(dot(z, z));
    for (i = 0; i < high - low; i++)
      x[i] = norm * z[i];
  }
  if (MYTHREAD == 0) {
    printf("cg: class %s, zeta %.10f, residual below 1e-12: %d\n", class->name, zeta, left < 1e-12);
    if (iterations == class->iterations)
      printf("cg: %s\n", fabs(zeta - class->zeta) <= 1e-10 ? "verified" : "not the benchmark's zeta");
  }
  upc_barrier;
  upc_free(direction[MYTHREAD]);
  return 0;
}

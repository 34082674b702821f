/* Rows that pointers lead to, in loops that may and may not read the pointers before they begin. Without UPC it is C:
   gcc -fno-strict-overflow -x c rows.upc prints the same. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef __UPC__
#define MYTHREAD 0
#endif

#define N 12

typedef struct { double re, im; } cx;
struct grid { int n; double *row; double **rows; double at[N]; };
union both { double d; double *p; };

static double ***cube, **plane, *line, sum;
static double table[N][N], part[N + 2];
static int many = N, zero;
static cx **waves;
static struct grid one, *grids[2];
static union both words[N];

static double **square(double first) {
  double **p = malloc(N * sizeof *p);
  for (int i = 0; i < N; i++) {
    p[i] = malloc(N * sizeof **p);
    for (int j = 0; j < N; j++)
      p[i][j] = first + i * 0.5 + j * 0.25;
  }
  return p;
}

static void show(const char *what) {
  double s = sum;
  for (int i = 0; i < N; i++) {
    s += line[i] * (i + 1) + part[i] + waves[i][N - 1 - i].re - waves[i][i].im;
    for (int j = 0; j < N; j++) {
      s += plane[i][j] * (i - j + 0.5) + table[i][j];
      for (int k = 0; k < N; k++)
        s += cube[i][j][k] * ((i + 2 * j + 3 * k) % 7);
    }
  }
  printf("%s %.6f\n", what, s);
}

/* What goes by rows. */
static void three(double ***u, double ***v, int n) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++)
      for (int k = 1; k < n - 1; k++)
        v[i][j][k] = (u[i - 1][j][k] + u[i + 1][j][k] + u[i][j - 1][k] + u[i][j + 1][k] + u[i][j][k - 1] + u[i][j][k + 1]) / 6;
}
static void twice(double **u, int n) {
  int i;
  for (i = 0; i <= n / 2 - 1; i++)
    u[2][2 * i + 1] += u[1][2 * i] * 0.5;
  sum += i;
}
static void backwards(double **u) { for (int i = N - 1; i > 0; i -= 2) u[3][i] -= u[4][i - 1]; }
static void down(double **u, int i) { while (i-- > 1) u[5][i] = u[5][i - 1] + u[6][i]; }
static int leaves(double **u, double most) {
  int i;
  for (i = 0; i < many; i++) {
    double v = u[7][i];
    if (v > most)
      break;
    if (i % 3 == 1)
      continue;
    u[8][i] = v;
  }
  return i;
}
static double returns(double **u) { for (long i = 0; i < N; i++) if ((u[9][i] *= 1.5) > 9) return u[9][i] + i; return 0; }
static void complexes(cx **x, cx **y) { for (int i = 0; i < N; i++) { x[1][i] = y[2][i]; x[3][i].re += y[1][N - 1 - i].im; } }
static void members(struct grid *g) { for (int i = 0; i < g->n; i++) g->rows[1][i] += g->row[i] + g->at[i] * 2; }
static void globals(void) { for (int i = 0; i < many; i++) line[i] += plane[i % 2][i] - line[i] / 4; }
static void arrays(int k) { for (int i = 1; i < N - 1; i++) { table[k][i] += part[i - 1] + part[i + 2]; part[i] = table[k + 1][i - 1]; } }
static void arrays_while(int k) { int i = 0; while (i < N) { table[k][i] -= 1; i++; } sum += i; }
static void far(double *p, int n) { for (int i = -3; i < n; i++) p[i + 3] += p[8 - i] * 0.125; }
static void inner(double **u) { for (int i = 0; i < 3; i++) { int j = i + 1; { double i = u[1][j]; sum += i; } } }
static void local(double **u) {
  double a[N] = {0};
  for (int i = 0; i < N; i++) {
    double t[3] = {i, 2};
    a[i] = u[2][i] + t[i % 3] + t[1];
  }
  for (int i = N - 1; i >= 0; i--)
    sum += a[i] * i;
}

/* Rows that change while the loop goes on. */
static void next_row(double **u, double **v) { for (int i = 0; i < N - 1; i++) { u[1][i] += 1; u[1] = v[i + 1]; } }
static void swap_in_cond(double **u) { for (int i = 0; i < N; u[2] = u[3 + i % 2], i++) u[2][i] += 2; }
static void inside(double **u) { double ***at = &u; double **other = plane; for (int i = 0; i < N; i++) { (*at)[3][i] += 3; if (i == 5) *at = other; } }
static void by_char(double **u, double *to) {
  unsigned char *b = (unsigned char *)&u[4], *from = (unsigned char *)&to;
  for (int i = 0; i < N; i++) {
    u[4][i] += 4;
    if (i == 3)
      b[0] = from[0], b[1] = from[1], b[2] = from[2], b[3] = from[3], b[4] = from[4], b[5] = from[5], b[6] = from[6], b[7] = from[7];
  }
}
static void by_copy(double **u, double **v) { for (int i = 0; i < N; i++) { u[5][i] += 5; memcpy(&u[5], &v[i], sizeof *u); } }
static void by_union(void) { for (int i = 0; i < N; i++) { words[1].p[i] += 6; words[1].p = i % 2 ? line : part; } }
static void by_struct(struct grid *g, struct grid *h) { for (int i = 0; i < N; i++) { g->row[i] += 7; *g = *h; } }
static void change(double **u, double *to) { u[6] = to; }
static void by_call(double **u, double *to) { for (int i = 0; i < N; i++) { u[6][i] += 8; change(u, to); } }
static void by_statement(double **u, double *to) { for (int i = 0; i < N; i++) { u[7][i] += 9; sum += ({ u[7] = to; 1.0; }); } }
static void bound(struct grid *g, int **n) { for (int i = 0; i < g->n; i++) { n[0][i] = 2; g->row[i] += 10; } }
static void bound_global(void) { for (int i = 0; i < many; i++) { line[i] += 11; if (i == 4) many = 7; } many = N; }
static void on_stack(double **u) { int n = 9, *p = &n; for (int i = 0; i < n; i++) { u[8][i] += 12; if (i == 3) *p = 6; } }
static void variable(double **u, double **v) { for (int i = 0; i < N; i++) { u[9][i] += 13; if (i == 6) u = v; } }
static void row_index(double **u) { int k = 1; for (int i = 0; i < N; i++) { u[k][i] += 14; k = i % 4; } }
static void overlap(double **u) { u[2] = u[1] + 1; for (int i = 0; i < N - 1; i++) u[2][i] = u[1][i] * 0.5 + u[2][i]; }

/* Loops that do not reach a row must not read it. */
static void never(double ***u, int n) {
  for (int i = 0; i < n; i++)
    u[1][2][i] = 1;
  int i = n;
  while (i > 0)
    u[3][1][--i] = 2;
  for (unsigned k = 0; k < (unsigned)(n > 0 ? n : 0); k++)
    u[1][k][0] = 1;
}
static void behind_if(double **u, int on) { for (int i = 0; i < N; i++) if (on) u[0][i] = 1; else sum += 0.5; }
static void behind_and(double **u, int on) { for (int i = 0; i < N; i++) sum += on && u[0][i] > 0 ? u[0][i] : 0.25; }
static void behind_break(double **u) { for (int i = 0; i < N; i++) { if (!u) break; u[0][i] = 1; } }
static void behind_continue(double **u) { for (int i = 0; i < N; i++) { if (!u) continue; u[0][i] = 1; } }
static int behind_return(double **u) { for (int i = 0; i < N; i++) { if (!u) return i + 1; u[0][i] = 1; } return 0; }
static void behind_switch(double **u, int on) { for (int i = 0; i < N; i++) switch (on) { case 1: u[0][i] = 1; break; default: sum += 0.125; } }
static void array_end(int n) { for (int i = 0; i < N + 9; i++) { part[i] += 1; if (i == n) break; } for (int i = 0; i < N + 9; i++) { if (i == n) break; part[i] += 1; } for (int i = 0; i < N + 9; i++) if (i < n) part[i] += 1; }
static void array_none(int from, int to) { for (int i = from; i < to; i++) part[i - 1] = 9; }
static void last(double **u) { int n = 0; for (int i = INT_MAX - 2; i < INT_MAX; i++) { u[1][n++] += i % 5; sum += u[2][i - (INT_MAX - 2)]; } sum += n; }
static void most(cx **x, long *l) {
  for (long i = 0; i < LONG_MAX; i++)
    if ((x[1][i].re += 0.5) < 0 || i == 5)
      break;
  for (long i = 0; i <= LONG_MAX; i++)
    if ((l[i] += 1) && i == 5)
      break;
  int i;
  for (i = 0; i <= INT_MAX - 1; i++)
    if ((x[2][i].re += 0.5) < 0 || i == 6)
      break;
  sum += i;
}

/* Gotos and volatile. */
static void jumps(double **u, int k) {
  int i = k;
  if (k)
    goto in;
  for (i = 0; i < N; i++) {
    u[1][i] += 15;
  in:
    u[2][i] += 16;
  }
}
static void is_volatile(double *volatile *u, volatile double **v) { for (int i = 0; i < N; i++) { u[1][i] += 17; v[2][i] += 18; } }

// Indices with effects, or that need statements; a head that declares another variable; the address behind an array.
static void effects(long *p, const char *s) {
  int k = 0;
  for (int i = 0; i < 3; i++)
    p[i + ++k] = i + 1;
  for (int i = 0; i < 3; i++)
    p[20 + i * (k -= 1) + 2] += 7;
  for (int i = 0; i < 3; i++)
    p[40 + i + (i == zero ? k : N)] += i + atoi(s);
  for (int i = 0; i < 3; i++)
    p[i + k++] += 100;
  for (int i = 0; i < 3; i++)
    p[i + atoi(s)] += 1000;
  sum += k;
}
static int head(double *p, int n) {
  int i = 0;
  for (double s = 1; i < n; i++)
    p[i] = s;
  return i;
}
static int head_break(double *p, int n) {
  int i = 0;
  for (double s = 1; i < n; i++) {
    p[i] += s;
    if (p[i] > 5)
      break;
  }
  return i;
}
static int edge[4], *end;
static struct edges { int a, b[2]; } edges[4];
static int *behind(int n) {
  int *e = NULL;
  for (int i = 0; i < n; i++)
    edge[i] = i, end = &edge[i + 1], edges[i].a = i, e = &edges[i].b[1];
  return e;
}

int main(void) {
  if (MYTHREAD != 0)
    return 0;
  cube = malloc(N * sizeof *cube), waves = malloc(N * sizeof *waves);
  for (int i = 0; i < N; i++) {
    cube[i] = square(i);
    waves[i] = malloc(N * sizeof **waves);
    for (int j = 0; j < N; j++)
      waves[i][j].re = i + j * 0.5, waves[i][j].im = i * j;
  }
  plane = square(3), line = calloc(N, sizeof *line);
  double ***other = malloc(N * sizeof *other);
  for (int i = 0; i < N; i++)
    other[i] = square(-i);
  three(cube, other, N), three(other, cube, N), show("three");
  twice(plane, N), show("twice");
  backwards(plane), show("backwards");
  down(plane, N), show("down");
  printf("%d %d %.3f\n", leaves(plane, 8), leaves(plane, 99), returns(plane)), show("leaves");
  complexes(waves, waves), show("complexes");
  one.n = N, one.row = line, one.rows = plane, grids[0] = &one;
  for (int i = 0; i < N; i++)
    one.at[i] = i;
  members(&one), members(grids[0]), show("members");
  globals(), show("globals");
  arrays(2), arrays_while(3), show("arrays");
  far(plane[5], N - 3), show("far");
  inner(plane), local(plane), show("inner");

  double **u = square(1), **v = square(2);
  next_row(u, v), swap_in_cond(u), inside(u), by_char(u, v[1]), by_copy(u, v);
  words[1].p = line, by_union();
  struct grid two = one;
  two.row = part, by_struct(&one, &two), one.row = line;
  by_call(u, v[2]), by_statement(u, v[3]);
  int *n = &one.n, **at = &n;
  bound(&one, at), one.n = N, bound_global(), on_stack(u), variable(u, v), row_index(u), overlap(v);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < (i == 2 ? N - 1 : N); j++)
      sum += u[i][j] * (i + 1) - v[i][j] * j;
  show("changes");

  never(NULL, zero), never(NULL, -3);
  double **nulls = calloc(N, sizeof *nulls), ***deep = calloc(N, sizeof *deep);
  never(deep, zero);
  behind_if(nulls, zero), behind_if(NULL, zero), behind_and(NULL, zero), behind_break(NULL), behind_continue(NULL), behind_switch(NULL, zero);
  printf("%d\n", behind_return(NULL));
  array_end(N), array_none(N + 5, N), array_none(-5, -5), last(plane);
  long counts[6] = {1};
  most(waves, counts), sum += counts[0] * counts[5];
  show("never");
  long places[80] = {0};
  effects(places, "3");
  for (int i = 0; i < 80; i++)
    sum += places[i] * (i + 1);
  int ran = head(line, 5), all = head_break(line, 7);
  line[4] = 9;
  int *e = behind(4);
  printf("%d %d %d %d %d\n", ran, all, head_break(line, 7), (int)(end - edge), (int)(e - &edges[3].a));
  jumps(plane, 0), jumps(plane, 3), is_volatile((double *volatile *)plane, (volatile double **)plane), show("jumps");
  return 0;
}

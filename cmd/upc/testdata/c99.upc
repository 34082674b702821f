#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
/* Compound literals, bit-fields, and places behind the ends of arrays, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#else
#define shared
#define upc_barrier
#define THREADS 1
#define MYTHREAD 0
#endif
struct flags { char tag; unsigned mode : 3, : 2, level : 5; int delta : 6; _Bool on : 1; long wide : 40; short end; unsigned char b : 7, : 0, c : 4; double d; };
struct small { signed char a : 3, b : 5; };
union mixed { unsigned all : 12; struct small s; int i : 4; };
struct empty { int x : 4; int : 0; char y; };
struct flags table2[2] = {{'a', 5, 17, -3, 1, -5000000000L, 7, 100, 9, 2.5}, {.delta = 31, .wide = 1}};
shared struct flags everywhere[THREADS];
static void fields(void) {
  struct flags f = table2[0], *p = &f;
  struct small s = {-4, 15};
  union mixed m;
  int i;
  printf("bits %d %d %d %d\n", (int)sizeof f, (int)sizeof s, (int)sizeof m, (int)sizeof(struct empty));
  printf("bits %c %u %u %d %d %ld %d %d %d %g\n", f.tag, f.mode, f.level, f.delta, f.on, (long)f.wide, f.end, f.b, f.c, f.d);
  f.mode = 13; p->level += 20; p->delta--; f.on = f.mode > 2; f.wide <<= 3; i = f.delta = 40; f.tag = 'z'; f.c = ~0;
  printf("bits %c %u %u %d %d %ld %d %d\n", p->tag, p->mode, p->level, p->delta, p->on, (long)p->wide, p->c, i);
  i = f.mode - 6 < 0; printf("bits %d", i); i = f.mode++; printf(" %d", i); i = ++f.mode; printf(" %d %d\n", i, f.mode); f.level /= 2; f.level %= 4; f.wide >>= 2; f.delta = -f.delta; f.mode ^= 1; f.b += f.c; f.b--;
  printf("bits %u %ld %d %u %d\n", f.level, (long)f.wide, f.delta, f.mode, f.b);
  memset(&m, 0, sizeof m); m.all = 0xabc; s.a++; s.b += 3; printf("bits %d %d %d %d %d %d\n", m.s.a, m.s.b, m.i, s.a, s.b, table2[1].delta + (int)table2[1].wide);
  everywhere[MYTHREAD] = f; everywhere[MYTHREAD].mode = 6; everywhere[MYTHREAD].wide -= 9; everywhere[MYTHREAD].delta++; everywhere[MYTHREAD].end = 77;
  i = everywhere[MYTHREAD].level++; f = everywhere[MYTHREAD];
  printf("bits %u %ld %d %d %d %u\n", f.mode, (long)f.wide, f.delta, f.end, i, everywhere[MYTHREAD].level);
}
struct point { int x, y; const char *name; };
struct point *origin = &(struct point){3, 4, "global"};
int *table = (int[]){7, 8, 9};
static int norm(struct point p) { return p.x * p.x + p.y * p.y; }
static int total(const int *v, int n) { return n ? *v + total(v + 1, n - 1) : 0; }
static int literals(int k) {
  struct point p = (struct point){.y = k, .x = 2}, *q = &(struct point){k, k + 1, "local"};
  int i, sum = 0, *each[3];
  for (i = 0; i < 3; i++) { each[i] = (int[2]){i, k}; sum += each[i][0] + each[i][1]; each[i][0] = 5; }
  q->x++;
  sum += norm((struct point){1, 2}) + total((int[]){1, 2, 3, k}, 4) + (int){k} + (struct point){5, 6}.y;
  sum += k > 1 && norm((struct point){.x = k, .name = "and"}) == k * k;
  sum += *(char[]){"a"} + (int)sizeof (int[]){1, 2, 3} + (k ? literals(0) : 0);
  return sum + p.x * 10000 + p.y * 100000 + q->x * 1000000 + origin->y + table[2] + (p.name == 0) + q->y;
}
static int ends(int n) {
  int b[2][3] = {{1, 2, 3}, {4, 5, 6}}, c[2][2][2] = {{{1}}}, s = 0, *p;
  struct { int v[2][2]; } in[2];
  for (p = b[0]; p != b[n]; p++) s += *p;
  for (p = b[1]; p < b[2]; p++) s += 10 * *p;
  for (p = &b[0][0]; p < &b[n][0]; p++) s += 100 * *p;
  for (p = &c[0][0][0]; p < c[n - 1][n]; p++) s += 1000 * *p;
  s += c[n][0] - c[0][0] + (&c[n - 1][2] - &c[0][0]) + (*(b + n) - b[0]);
  return s + (in[1].v[n] - in[1].v[0]) + (in[n - 1].v[1] - &in[0].v[0][0]) + (int)(&b[n] - b);
}
int main(void) {
  long double ld = 1.5L;
  printf("literals %d %d %s\n", literals(7), norm(*origin), origin->name);
  fields();
  printf("ends %d\n", ends(2));
  printf("long double %.2Lf %d\n", ld * 2 + sqrtl(4.0L), (int)(ld > 1));
  return 0;
}

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
struct inner { int b, c, d; };
struct outer { int x; struct inner a; int y, v[4]; char name[6]; };
static struct outer designated[] = {
  {.a.c = 1, 2, 3, 4}, {.v[1] = 5, 6, 7, {"abc"}}, {.a = {1, 2, 3}, .a.c = 9}, {.a.b = 5, .a = {.c = 6}}, {1, 2, .y = 3, 4, .name = "hello", .name = "a"}, [7].v[2] = 3, 4, {5, 6}, [6] = {.y = 8}};
static int square[3][3] = {[1][1] = 5, 6, 7, [0] = {1, 2}, [2][2] = 9};
static int folded[] = {1.5 > 1.0, !1.5, 1.5 && 0.5, 0.5 ? 3 : 4, 0.0 || 1 != 1.0, NULL == 0};
/* What has no braces of its own is initialised again member by member. */
static const struct { int x, y; } again[3] = {[1].y = 7, [2] = {1, 2}, [0] = {3, 4}, 5, [2] = {.y = 6}};
static void initialisers(int k) {
  struct outer o = {.a.c = k, k + 1, .v = {k, [3] = k}}, p = {k, .a = o.a, .v = {k}};
  const struct outer *all[11] = {&o, &p};
  int i, j;
  for (i = 0; i < (int)(sizeof designated / sizeof *designated); i++) all[i + 2] = &designated[i];
  for (i = 0; all[i]; i++) {
    const int *v = (const int *)all[i];
    printf("designated %d:", i);
    for (j = 0; j < 9; j++) printf(" %d", v[j]);
    printf(" %d %d\n", all[i]->name[0], all[i]->name[2]);
  }
  for (i = 0; i < 3; i++) printf("designated %d %d %d\n", square[i][0], square[i][1], square[i][2]);
  for (i = 0; i < 3; i++) printf("again %d %d\n", again[i].x, again[i].y);
  for (i = 0; i < 6; i++) printf("folded %d %d\n", i, folded[i]);
}
struct node { int v; struct link *l; struct node *next; };
struct link { struct node *n; int k; };
static int tags(void) {
  struct link;
  struct node { struct link *l; char c; struct node *self; };
  struct link { struct node *n; int k; };
  struct node a = {0, 'x', &a};
  struct link b = {&a, 4};
  union part { int i; } x = {3};
  a.l = &b;
  { struct node { double d; } n = {1.5}; union part { char c[2]; } y = {{2}}; x.i += n.d * 2 + y.c[0]; }
  return a.l->n->self->c + b.k + x.i;
}
static long nulls(void) {
  char *p = (char *)0 + 3, *q = (char *)0;
  return (p - q) + ((char *)0 - (char *)0) + !NULL + (NULL ? 10 : 20) + (NULL != 0);
}
int main(void) {
  struct link l = {0, 2};
  struct node n = {1, &l, &n};
  long double ld = 1.5L;
  printf("literals %d %d %s\n", literals(7), norm(*origin), origin->name);
  fields();
  initialisers(7);
  l.n = &n;
  printf("tags %d %d %ld\n", n.next->l->n->v + l.k, tags(), nulls());
  printf("ends %d\n", ends(2));
  printf("long double %.2Lf %d\n", ld * 2 + sqrtl(4.0L), (int)(ld > 1));
  return 0;
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
/* Compound literals, and places behind the ends of arrays, against a compiler of C. */
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
  printf("ends %d\n", ends(2));
  printf("long double %.2Lf %d\n", ld * 2 + sqrtl(4.0L), (int)(ld > 1));
  return 0;
}

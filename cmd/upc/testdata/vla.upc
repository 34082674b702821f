#include <upc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <alloca.h>
static void fill(int n, int m, double a[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      a[i][j] = i * 10 + j;
}
static double trace(int n, double a[n][n]) {
  double s = 0;
  for (int i = 0; i < n; i++)
    s += a[i][i];
  n = 1;
  return s + sizeof(a[0]) / sizeof(double);
}
static double sum(int n, double *const v) { double s = 0; while (n-- > 0) s += v[n]; return s; }
void proto(int n, int a[*]);
void proto(int n, int a[n]) { a[n - 1] = 7; }
/* Arrays that grow, and live at once. */
static int all(const char *p, size_t n, int c) { while (n--) if (p[n] != c) return 0; return 1; }
static int grow(void) {
  int right = 0;
  for (int k = 1; k < 4; k++) {
    int a[k * 100], b[k * 100];
    memset(a, 1, sizeof a);
    memset(b, 2, sizeof b);
    for (int j = 1; j < 4; j++) {
      char c[j * k * 100], d[j * 100];
      memset(c, 3, sizeof c);
      memset(d, 4, sizeof d);
      right += all(c, sizeof c, 3) && all(d, sizeof d, 4) && all((char *)a, sizeof a, 1) && all((char *)b, sizeof b, 2);
    }
  }
  return right;
}
static int back(int k) {
  int right = 0;
again:;
  char a[k * 100], b[k * 100];
  memset(a, 1, sizeof a);
  memset(b, 2, sizeof b);
  right += all(a, sizeof a, 1) && all(b, sizeof b, 2);
  if (++k < 4) goto again;
  return right;
}
static int kept(int n) {
  char *p[4];
  for (int k = 0; k < n; k++) {
    { char a[k + 1]; memset(a, 9, sizeof a); }
    p[k] = alloca(100);
    memset(p[k], k, 100);
    { char b[k * 100 + 1]; memset(b, 9, sizeof b); }
  }
  int right = 0;
  for (int k = 0; k < n; k++) right += all(p[k], 100, k);
  return right;
}
/* Types' names, where no declaration can stand. */
static void named(int n) {
  int m[6] = {1, 2, 3, 4, 5, 6}, k = 0;
  while (n++ < 4) printf("w %zu\n", sizeof(int[n]));
  for (k = 1; k < 3; k++) printf("f %zu %zu\n", sizeof(int[k]), sizeof(double[k][n]));
  do printf("d %zu\n", sizeof(int[n])); while (n++, sizeof(char[n]) < 7);
  if (n) printf("i %d\n", ((int (*)[n - 4])m)[1][0]);
  for (int (*p)[k] = (int (*)[k])m; (char *)p < (char *)m + sizeof(int[2 * k]); p = p + 1) printf("p %d\n", (*p)[k - 1]);
  printf("c %d\n", n > 3 && sizeof(int[n]) == 4 * n ? (int)sizeof(char[n]) : 0);
}
int main(void) {
  int n = 3 + 0 * MYTHREAD;
  double a[n][n], fixed[4][4], (*p)[n];
  int counts[THREADS], more[2 * THREADS + 1], v[n * 2];
  char name[n + 5];
  if (MYTHREAD) return 0;
  fill(n, n, a);
  fill(4, 4, fixed);
  p = a;
  printf("%g %g %g\n", trace(n, a), trace(4, fixed), a[2][1]);
  printf("%g %g %zu %zu\n", p[1][2], *(*(p + 2) + 1), sizeof a, sizeof *p);
  for (int i = 0; i < THREADS; i++) counts[i] = i;
  for (int i = 0; i <= 2 * THREADS; i++) more[i] = i;
  printf("%d %d %zu\n", counts[THREADS - 1], more[2 * THREADS], sizeof counts / sizeof counts[0]);
  strcpy(name, "vla"); printf("%s %zu\n", name, sizeof(name));
  double (*h)[n] = malloc(sizeof(double[n][n]));
  memcpy(h, a, sizeof(a));
  printf("%g %g\n", h[2][2], sum(n, h[1]));
  free(h);
  long total = 0;
  for (int k = 1; k < 2000; k++) {
    int tmp[k * 10];
    memset(tmp, 0, sizeof tmp);
    tmp[k] = k;
    total += tmp[k];
    if (k % 2) { char inner[k]; inner[k - 1] = 1; total += inner[k - 1]; }
    total += tmp[k] - k;
  }
  printf("%ld\n", total);
  proto(n, v);
  int cube[2][n][4];
  cube[1][2][3] = 5;
  int (*row)[4] = cube[1];
  double (*q)[n] = &a[1];
  printf("%d %d %g %zu\n", v[2], row[2][3], (*q)[2], sizeof cube);
  printf("%d %d %d\n", grow(), back(1), kept(4));
  named(2);
  goto end;
end:
  return 0;
}

#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <assert.h>
#define N 10
#define SQ(x) ((x)*(x))
typedef struct node { int v; struct node *next; } node_t;
typedef union { unsigned int u; float f; } pun;
enum { A, B = 5, C };
struct pt { double x, y; int tag[3]; };
static int counter;
int table[4] = {1, 2, 3};
const char *names[] = {"zero", "one", "two"};
struct pt origin = { 1.5, 2.5, {7, 8, 9} };
shared [3] int a[30*THREADS];
shared int cyc[10*THREADS];
shared [] int ind[20];
shared [*] double star[4*THREADS];
shared int scal = 42;
int add(int x, int y) { return x + y; }
int apply(int (*f)(int, int), int x, int y) { return f(x, y); }
static void swap(int *p, int *q) { int tmp = *p; *p = *q; *q = tmp; }
int fact(int n) { return n <= 1 ? 1 : n * fact(n - 1); }
node_t *cons(int v, node_t *n) { node_t *p = malloc(sizeof *p); p->v = v; p->next = n; return p; }
int next(void) { static int calls = 100; return calls++; }
int classify(int c) {
  switch (c) {
  case 1: case 2: return 10;
  case 3: c += 5; /* falls */
  case 4: c += 1; break;
  default: c = -1;
  }
  return c;
}
int loops(void) {
  int i, j, s = 0;
  for (i = 0, j = 10; i < j; i++, j--) { if (i == 2) continue; s += i * j; }
  do { s++; } while (s % 7);
  while (1) { if (s++ > 100) break; }
  for (;;) { if (++s > 110) goto out; }
out:
  return s;
}
int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
  int x = 3, y = 4, i;
  int arr[5] = {5, 4, 3, 2, 1};
  char buf[32];
  pun p;
  node_t *list = NULL, *n;
  struct pt q = origin;
  double mat[3][4];
  if (MYTHREAD == 0) {
  swap(&x, &y);
  printf("%d %d %d\n", x, y, apply(add, x, y));
  printf("%d %s %c %5.2f|%-5d|%05d|%x\n", SQ(x + 1), names[1], 'q', 3.14159, 42, 42, 255u);
  for (i = 0; i < 3; i++) list = cons(i, list);
  for (n = list; n; n = n->next) printf("%d ", n->v);
  printf("\n%d %d %d\n", fact(5), next(), next());
  printf("%d %d %d %d\n", classify(1), classify(3), classify(4), classify(9));
  printf("%d\n", loops());
  qsort(arr, 5, sizeof(int), cmp);
  for (i = 0; i < 5; i++) printf("%d ", arr[i]);
  strcpy(buf, "hello"); strcat(buf, " world");
  printf("\n%s %lu\n", buf, strlen(buf));
  p.f = 1.0f; printf("%08x\n", p.u);
  q.tag[1] = 80; q.x += origin.tag[0];
  printf("%g %g %d %d\n", q.x, q.y, q.tag[1], origin.tag[1]);
  memset(mat, 0, sizeof mat); mat[1][2] = sqrt(2.0);
  printf("%.3f %d %d %d\n", mat[1][2], (int)sizeof mat, A, C);
  { char *s = buf, *d = buf; int k = 0; while ((*d++ = *s++)) k++; printf("%d %ld\n", k, (long)(s - buf)); }
  { unsigned u = 1; u -= 2; printf("%u %d %ld\n", u, (int)(char)200, (long)1 << 40); }
  { int z = 5; z += z++ ? 1 : 2; x = (z > 3 && y < 10) || !x; printf("%d %d\n", x, x ? y : -y); }
  { int *ip = arr; int v = *ip++ + *ip; printf("%d %d\n", v, ip[-1]); ip += 2; printf("%td\n", ip - arr); }
  }
  scal += 0;
  upc_barrier;
  if (MYTHREAD == 0) {
    shared [3] int *sp = a;
    shared int *cp = &cyc[3];
    for (i = 0; i < 30*THREADS; i++) *sp++ = i;
    assert(sp - a == 30*THREADS);
    printf("%d %d %d\n", a[4], a[29], scal);
    printf("%d %d %d\n", (int)upc_threadof(&a[4]), (int)upc_phaseof(&a[4]), (int)upc_threadof(cp + 2));
    cp += 5; *cp = 77; printf("%d %d\n", cyc[8], (int)(cp - cyc));
    ind[5] = 9; ind[5]++; ind[5] *= 2; printf("%d\n", ind[5]);
    star[3] = 2.5; printf("%g %d %d\n", star[3], (int)upc_blocksizeof(star), (int)(sizeof(a)/sizeof(a[0])) );
  }
  upc_barrier;
  { int mine = 0; upc_forall(i = 0; i < 30*THREADS; i++; &a[i]) mine += a[i] == i; printf("T%d %d\n", MYTHREAD, mine); }
  return 0;
}

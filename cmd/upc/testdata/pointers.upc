// Pointers-to-shared of all kinds beside the arithmetic of UPC 1.3, 6.4.2, in whole numbers.
#include <upc_relaxed.h>
#include <stdio.h>
#include <string.h>

#define N 24
typedef struct { int key; shared void *any; double w[3]; } item;

shared int a1[N * THREADS];
shared [3] int a3[N * THREADS];
shared [] int a0[N];
shared [7] char a7[N * THREADS];
shared [2] item items[2 * THREADS];
shared int *shared root;
shared [3] int *shared heads[THREADS];
strict shared int flag;
int bad;

static void check(int ok, int line) { if (!ok) { bad++; printf("thread %d: line %d\n", MYTHREAD, line); } }
#define CHECK(e) check(e, __LINE__)

static void block3(void) {
  int i, j;
  for (i = 0; i < N * THREADS; i++) {
    shared [3] int *p = &a3[i];
    CHECK(upc_threadof(p) == i / 3 % THREADS);
    CHECK(upc_phaseof(p) == i % 3);
    CHECK(upc_threadof(a1 + i) == i % THREADS && upc_phaseof(&a1[i]) == 0);
    CHECK(upc_threadof(&a7[i]) == i / 7 % THREADS);
    for (j = 0; j < N * THREADS; j += 5) {
      shared [3] int *q = a3 + j;
      CHECK(p - q == i - j && q + (i - j) == p && (p < q) == (i < j) && (p >= q) == (i >= j));
      CHECK(&a1[j] - &a1[i] == j - i);
      CHECK(&a7[j] - &a7[i] == j - i && &a7[i] + (j - i) == &a7[j]);
    }
    if (i > 0) { shared [3] int *r = p; r--; CHECK(r == &a3[i - 1]); r++; CHECK(r == p); r += 1; r -= 1; CHECK(p == r); }
  }
}

static void casts(void) {
  shared [3] int *p = &a3[4];
  shared void *v = p;
  shared int *c = (shared int *)p;
  shared [] int *l = (shared [] int *)&a3[3];
  CHECK(upc_phaseof(v) == 1 && upc_phaseof(c) == 0 && upc_threadof(c) == upc_threadof(p));
  CHECK((shared [3] int *)v == p && upc_phaseof((shared [3] int *)v) == 1);
  CHECK(upc_phaseof((shared [4] int *)p) == 0 && upc_phaseof(upc_resetphase(p)) == 0);
  CHECK(l + 1 == (shared [] int *)p && upc_addrfield(l + 1) == upc_addrfield(p));
  CHECK(&a0[5] - a0 == 5 && upc_threadof(&a0[5]) == 0);
  v = NULL;
  CHECK(!v && p != NULL && (shared [3] int *)v == 0);
  CHECK(sizeof(a3) == N * THREADS * sizeof(int) && upc_blocksizeof(a3) == 3 && upc_elemsizeof(a7) == 1);
  CHECK(upc_localsizeof(a3) == N * sizeof(int) && upc_affinitysize(10, 3, 0) >= 3);
}

int main(void) {
  int i, buf[4];
  int *mine = (int *)&a1[MYTHREAD];
  block3();
  casts();
  for (i = 0; i < N; i++) mine[i] = 100 * MYTHREAD + i;
  heads[MYTHREAD] = &a3[3 * MYTHREAD];
  items[2 * MYTHREAD].key = MYTHREAD;
  items[2 * MYTHREAD].any = &a3[MYTHREAD];
  items[2 * MYTHREAD].w[1] = MYTHREAD / 2.0;
  upc_barrier 1;
  for (i = 0; i < N * THREADS; i++) CHECK(a1[i] == 100 * (i % THREADS) + i / THREADS);
  for (i = 0; i < THREADS; i++) {
    item it = items[2 * i];
    shared [2] item *q = &items[2 * i];
    CHECK(heads[i] == &a3[3 * i] && it.key == i && it.w[1] == i / 2.0 && q->w[1] == it.w[1]);
    CHECK((shared [3] int *)it.any == a3 + i && upc_threadof(&q->w[2]) == i);
  }
  upc_memget(buf, &a1[1], 3 * sizeof(int));
  CHECK(buf[0] == a1[1] && buf[2] == buf[0] + 2);
  upc_barrier 2;
  if (MYTHREAD == 0) {
    shared [] int *d = upc_alloc(4 * sizeof(int));
    buf[0] = 5; buf[3] = 8;
    upc_memput(d, buf, sizeof buf);
    CHECK(d[3] == 8 && *d == 5);
    upc_memset(d, 0, 8);
    CHECK(d[1] == 0 && d[3] == 8);
    upc_memcpy(&a0[2], d + 2, 8);
    CHECK(a0[3] == 8);
    upc_free(d);
    root = &a1[2];
    flag = 1;
  } else {
    while (!flag)
      ;
    CHECK(root == &a1[2] && *root == a1[2]);
  }
  upc_notify;
  upc_wait;
  printf("thread %d: %d wrong\n", MYTHREAD, bad);
  return 0;
}

// Casts and assignments of pointers-to-shared.
#include <upc.h>
#include "clause.h"

shared [3] int a[6 * THREADS];
shared [3] char c[6 * THREADS];
shared int one[THREADS];
struct later;
shared [3] struct later *unknown;

int main(void) {
  shared [3] int *p = &a[2], *q;
  shared void *v;
  const shared void *cv = p;
  int *local;
  /* 1: a null pointer constant may become a pointer-to-shared, explicitly or not. */
  q = 0;
  CHECK(q == (shared [3] int *)0 && q == NULL && (shared [] char *)(void *)0 == 0 && !(shared void *)NULL);
  /* 2: by way of shared void * the phase stays. */
  v = p;
  q = v;
  CHECK(upc_phaseof(v) == 2 && upc_phaseof(q) == 2 && q == p && upc_phaseof((shared [3] int *)cv) == 2);
  CHECK(q + 1 == &a[3]);
  /* 2: another block size, element size or an incomplete type has phase zero. */
  CHECK(upc_phaseof((shared [4] int *)p) == 0 && upc_phaseof((shared [3] char *)p) == 0);
  unknown = (shared [3] struct later *)p;
  CHECK(upc_phaseof(unknown) == 0);
  CHECK(upc_phaseof((shared [3] unsigned *)p) == 2); /* the same sizes */
  CHECK(upc_threadof((shared [4] int *)p) == 0 && upc_addrfield((shared [4] int *)p) == upc_addrfield(p));
  /* 3: from generic to block size 1 or indefinite. */
  CHECK(upc_phaseof((shared int *)v) == 0 && upc_phaseof((shared [] int *)v) == 0);
  CHECK((shared int *)v + 1 == (shared int *)&a[3] + 0 || THREADS == 1 || upc_threadof((shared int *)v + 1) == 1);
  /* 4, 6: one's own objects by local pointers. */
  one[MYTHREAD] = 5;
  local = (int *)&one[MYTHREAD];
  CHECK(*local == 5 && ++*local == 6 && one[MYTHREAD] == 6);
  /* 5: null stays null. */
  p = NULL;
  local = (int *)p;
  CHECK(local == NULL && (void *)(shared void *)p == 0);
  return clause_done();
}

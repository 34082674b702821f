// Castability: 7.7.2.1 upc_cast, 7.7.2.2 upc_thread_info.
#include <upc_relaxed.h>
#include <upc_castable.h>
#include "clause.h"

#if !defined(__UPC_CASTABLE__) || __UPC_CASTABLE__ != 1
#error __UPC_CASTABLE__
#endif
/* 7.7.2.2, 5 and 6 */
#if (UPC_CASTABLE_ALL & UPC_CASTABLE_STATIC) != UPC_CASTABLE_STATIC || UPC_CASTABLE_STATIC == 0
#error UPC_CASTABLE_ALL
#endif

shared [4] int a[4 * THREADS];
shared [] int *shared own[THREADS];
shared [4] int *shared global;

static const int regions[] = { UPC_CASTABLE_ALL_ALLOC, UPC_CASTABLE_GLOBAL_ALLOC, UPC_CASTABLE_ALLOC, UPC_CASTABLE_STATIC };

/* Four ints at p, of thread and of a region, which this thread alone writes. */
static void region(int flag, int thread, shared [] int *p) {
  upc_thread_info_t info = upc_thread_info(thread);
  int *l = upc_cast(p), i;
  CHECK(upc_threadof(p) == thread);
  upc_barrier;
  /* 7.7.2.2, 4: guaranteed is castable. */
  CHECK(!(info.guaranteedCastable & flag) || l != NULL);
  if (l != NULL) {
    for (i = 0; i < 4; i++)
      l[i] = 10 * MYTHREAD + i;
    /* 7.7.2.1, 9: again, and for another pointer into the object. */
    CHECK(upc_cast(p) != NULL && (int *)upc_cast(p + 2) == l + 2);
  } else
    for (i = 0; i < 4; i++)
      p[i] = 10 * MYTHREAD + i;
  upc_barrier;
  /* 7.7.2.1, 3: it is the same memory. */
  for (i = 0; i < 4; i++)
    CHECK(p[i] == 10 * MYTHREAD + i && (l == NULL || l[i] == p[i]));
  upc_barrier;
}

int main(void) {
  int i, j, next = (MYTHREAD + 1) % THREADS, seen = 0;
  shared [4] int *all = upc_all_alloc(THREADS, 4 * sizeof(int));
  upc_thread_info_t info = upc_thread_info(MYTHREAD);
  own[MYTHREAD] = upc_alloc(4 * sizeof(int));
  if (MYTHREAD == 0)
    global = upc_global_alloc(THREADS, 4 * sizeof(int));
  upc_barrier;
  for (i = 0; i < 4; i++) {
    seen |= regions[i];
    for (j = 0; j < 4; j++)
      CHECK((i == j) == ((regions[i] & regions[j]) != 0));
  }
  CHECK((seen & UPC_CASTABLE_ALL) == seen && (info.guaranteedCastable & seen) == seen);
  /* 7.7.2.1, 5: of this thread it is the cast; 6: a null pointer is null. */
  CHECK(upc_cast(&a[4 * MYTHREAD + 1]) == (void *)&a[4 * MYTHREAD + 1]);
  CHECK(upc_cast(own[MYTHREAD]) == (void *)own[MYTHREAD]);
  CHECK(upc_cast(NULL) == NULL);
  region(UPC_CASTABLE_STATIC, next, (shared [] int *)&a[4 * next]);
  region(UPC_CASTABLE_ALLOC, next, own[next]);
  region(UPC_CASTABLE_ALL_ALLOC, next, (shared [] int *)&all[4 * next]);
  region(UPC_CASTABLE_GLOBAL_ALLOC, next, (shared [] int *)&global[4 * next]);
  return clause_done();
}

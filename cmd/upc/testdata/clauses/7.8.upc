// Parallel I/O: 7.8 what is common, 7.8.1 consistency, 7.8.2 types, 7.8.3 to 7.8.7 the functions.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include <upc_io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clause.h"

#if !defined(__UPC_IO__) || __UPC_IO__ != 1
#error __UPC_IO__
#endif
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)
#define N 12

shared int cyclic[N * THREADS];
shared [5] int blocked[N * THREADS];
shared [] int one[N];
upc_file_t *shared handle;
struct pair { long sum; upc_file_t *file; };

static void fill(int by) {
  int i;
  upc_forall (i = 0; i < N * THREADS; i++; &cyclic[i])
    cyclic[i] = by * i;
  upc_forall (i = 0; i < N * THREADS; i++; &blocked[i])
    blocked[i] = by * (i + 1000);
  upc_barrier;
}

/* 7.8.4.2, 7.8.5.2: one file pointer for all. */
static void common(const char *name) {
  int i, flags = UPC_RDWR | UPC_CREATE | UPC_TRUNC | UPC_COMMON_FP;
  long bytes = sizeof(int) * N * THREADS;
  upc_file_t *f = upc_all_fopen(name, flags, 0, NULL);
  CHECK(f != NULL);
  /* 7.8.2, 4: the handle is the same on all threads. */
  if (MYTHREAD == 0)
    handle = f;
  upc_barrier;
  CHECK(handle == f);
  CHECK(upc_all_fget_size(f) == 0);
  fill(1);
  CHECK(upc_all_fwrite_shared(f, cyclic, 1, sizeof(int), N * THREADS, ALL) == bytes);
  CHECK(upc_all_fseek(f, 0, UPC_SEEK_CUR) == bytes);
  CHECK(upc_all_fwrite_shared(f, blocked, upc_blocksizeof(blocked), upc_elemsizeof(blocked), N * THREADS, 0) == bytes);
  CHECK(upc_all_fget_size(f) == 2 * bytes);
  CHECK(upc_all_fsync(f) == 0);
  /* 7.8.3.4, 4 to 8; what is read goes to an array with another layout. */
  CHECK(upc_all_fseek(f, -2 * bytes, UPC_SEEK_END) == 0);
  CHECK(upc_all_fread_shared(f, blocked, 5, sizeof(int), N * THREADS, ALL) == bytes);
  upc_all_fread_shared_async(f, cyclic, 1, sizeof(int), N * THREADS, ALL);
  CHECK(upc_all_fcntl(f, UPC_ASYNC_OUTSTANDING, NULL) == 1);
  CHECK(upc_all_fwait_async(f) == bytes);
  CHECK(upc_all_fcntl(f, UPC_ASYNC_OUTSTANDING, NULL) == 0);
  upc_forall (i = 0; i < N * THREADS; i++; &cyclic[i])
    CHECK(cyclic[i] == i + 1000);
  upc_forall (i = 0; i < N * THREADS; i++; &blocked[i])
    CHECK(blocked[i] == i);
  /* 7.8, 5: at the end there is nothing more. 7.8.4.2, 5: no elements, and the buffer is ignored. */
  CHECK(upc_all_fread_shared(f, cyclic, 1, sizeof(int), N, ALL) == 0);
  CHECK(upc_all_fread_shared(f, NULL, 0, 0, 5, ALL) == 0);
  CHECK(upc_all_fseek(f, -4, UPC_SEEK_CUR) == 2 * bytes - 4);
  CHECK(upc_all_fread_shared(f, one, 0, sizeof(int), N, ALL) == 4);
  if (MYTHREAD == 0)
    CHECK(one[0] == N * THREADS - 1 + 1000);
  /* 7.8.3.4, 7: no place is negative. 7.8.3, 3: private memory has no common file pointer. */
  CHECK(upc_all_fseek(f, -1, UPC_SEEK_SET) == -1);
  CHECK(upc_all_fread_local(f, &i, sizeof i, 1, ALL) == -1);
  /* 7.8.3.8 */
  CHECK(upc_all_fcntl(f, UPC_GET_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(f, UPC_SET_STRONG_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(f, UPC_GET_CA_SEMANTICS, NULL) == UPC_STRONG_CA);
  CHECK(upc_all_fcntl(f, UPC_GET_FL, NULL) == (flags | UPC_STRONG_CA));
  CHECK(upc_all_fcntl(f, UPC_SET_WEAK_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(f, UPC_GET_FP, NULL) == UPC_COMMON_FP);
  CHECK(upc_all_fcntl(f, UPC_SET_INDIVIDUAL_FP, NULL) == 0);
  CHECK(upc_all_fcntl(f, UPC_GET_FP, NULL) == UPC_INDIVIDUAL_FP && upc_all_fseek(f, 0, UPC_SEEK_CUR) == 0);
  CHECK(upc_all_fcntl(f, UPC_GET_FL, NULL) == (flags & ~UPC_COMMON_FP | UPC_INDIVIDUAL_FP));
  CHECK(upc_all_fcntl(f, 4711, NULL) == -1);
  CHECK(upc_all_fclose(f) == 0);
  CHECK(upc_all_fclose(f) == -1);
  CHECK(upc_all_fcntl(f, UPC_GET_FP, NULL) == -1);
}

/* Each thread at its place; hints; sizes. */
static void individual(const char *name) {
  struct upc_hint hints[] = { { "access_style", "sequential" }, { "file_perm", "640" } }, hint = { "access_style", "random" };
  const struct upc_hint *have;
  const char *opened;
  int i, own[N], back[N], done;
  long bytes = sizeof own;
  /* 7.8.3.1, 3: what has to be there; 7.8.3.1, 4: no file, no such flags, on all threads. */
  upc_file_t *f = upc_all_fopen(name, UPC_RDWR | UPC_CREATE | UPC_EXCL | UPC_INDIVIDUAL_FP, 0, NULL);
  CHECK(f == NULL);
  CHECK(upc_all_fopen("none", UPC_RDONLY | UPC_INDIVIDUAL_FP, 0, NULL) == NULL);
  CHECK(upc_all_fopen(name, UPC_RDWR, 0, NULL) == NULL);
  CHECK(upc_all_fopen(name, UPC_RDWR | UPC_RDONLY | UPC_COMMON_FP, 0, NULL) == NULL);
  CHECK(upc_all_fopen(name, UPC_RDONLY | UPC_COMMON_FP | UPC_INDIVIDUAL_FP, 0, NULL) == NULL);
  f = upc_all_fopen(name, UPC_RDWR | UPC_INDIVIDUAL_FP | UPC_APPEND | UPC_DELETE_ON_CLOSE, 2, hints);
  CHECK(f != NULL && upc_all_fseek(f, 0, UPC_SEEK_CUR) == 2 * bytes * THREADS);
  CHECK(upc_all_fcntl(f, UPC_GET_FN, &opened) == 0 && !strcmp(opened, name));
  memset(hints, 0, sizeof hints);
  CHECK(upc_all_fcntl(f, UPC_SET_HINT, &hint) == 0);
  CHECK(upc_all_fcntl(f, UPC_GET_HINTS, &have) == 2 && !strcmp(have[0].key, hint.key) && have[0].key != hint.key);
  CHECK(!strcmp(have[0].value, "random") && !strcmp(have[1].value, "640"));
  CHECK(upc_all_fset_size(f, 0) == 0 && upc_all_fget_size(f) == 0);
  /* 7.8, 7: a place beyond the end makes the file longer when it is written. */
  for (i = 0; i < N; i++)
    own[i] = MYTHREAD * N + i;
  CHECK(upc_all_fseek(f, bytes * (THREADS - MYTHREAD), UPC_SEEK_SET) == bytes * (THREADS - MYTHREAD));
  CHECK(upc_all_fwrite_local(f, own, sizeof(int), N, ALL) == bytes);
  CHECK(upc_all_fget_size(f) == bytes * (THREADS + 1));
  /* 7.8, 13: a thread sees what it has written; others after a synchronization. */
  upc_all_fseek(f, -bytes, UPC_SEEK_CUR);
  CHECK(upc_all_fread_local(f, back, 1, bytes, UPC_IN_NOSYNC | UPC_OUT_NOSYNC) == bytes && !memcmp(own, back, bytes));
  CHECK(upc_all_fsync(f) == 0);
  upc_all_fseek(f, bytes * (1 + MYTHREAD), UPC_SEEK_SET);
  upc_all_fread_local_async(f, back, sizeof(int), N, UPC_IN_NOSYNC | UPC_OUT_NOSYNC);
  for (done = 0; !done;)
    i = upc_all_ftest_async(f, &done);
  CHECK(i == bytes);
  for (i = 0; i < N; i++)
    CHECK(back[i] == (THREADS - 1 - MYTHREAD) * N + i);
  /* 7.8.3.7: the size is what it was, or more. */
  CHECK(upc_all_fpreallocate(f, bytes) == 0 && upc_all_fget_size(f) == bytes * (THREADS + 1));
  CHECK(upc_all_fpreallocate(f, bytes * (THREADS + 2)) == 0 && upc_all_fget_size(f) == bytes * (THREADS + 2));
  /* 7.8.4.2: each thread a part of an array of its own layout; one reads nothing. */
  upc_all_fseek(f, bytes * (1 + MYTHREAD), UPC_SEEK_SET);
  upc_barrier;
  CHECK(upc_all_fread_shared(f, &cyclic[N * MYTHREAD], 1, sizeof(int), MYTHREAD ? N : 0, ALL) == (MYTHREAD ? bytes : 0));
  upc_forall (i = N; i < N * THREADS; i++; &cyclic[i])
    CHECK(cyclic[i] == (THREADS - 1 - i / N) * N + i % N);
  CHECK(upc_all_fclose(f) == 0);
  /* 7.8.3.1, 3: it is deleted. */
  CHECK(upc_all_fopen(name, UPC_RDONLY | UPC_COMMON_FP, 0, NULL) == NULL);
}

/* 7.8.6: lists; 7.8.1.3, 8: the example, with strong semantics, has the outcome of one of six orders. */
static void lists(const char *name) {
  static const struct upc_filevec example[3][2] = { { { 1, 3 }, { 5, 4 } }, { { 0, 3 }, { 3, 3 } }, { { 4, 3 }, { 8, 4 } } };
  static const int order[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
  char own[8], file[12], want[12];
  struct upc_local_memvec memory = { own, 0 };
  struct upc_shared_memvec blocks[2] = { { &cyclic[1], sizeof(int), 3 * sizeof(int) }, { one, 0, sizeof(int) } };
  struct upc_filevec places[3] = { { 4, 4 }, { 2, 0 }, { 100, 12 } };
  int i, j, found = 0;
  upc_file_t *f = upc_all_fopen(name, UPC_RDWR | UPC_CREATE | UPC_COMMON_FP | UPC_STRONG_CA, 0, NULL);
  memset(own, '0' + MYTHREAD, sizeof own);
  if (MYTHREAD < 3) {
    memory.len = example[MYTHREAD][0].len + example[MYTHREAD][1].len;
    CHECK(upc_all_fwrite_list_local(f, 1, &memory, 2, example[MYTHREAD], UPC_IN_NOSYNC | UPC_OUT_NOSYNC) == memory.len);
  } else
    CHECK(upc_all_fwrite_list_local(f, 0, NULL, 0, NULL, UPC_IN_NOSYNC | UPC_OUT_NOSYNC) == 0);
  memory.baseaddr = file;
  memory.len = 12;
  places[0].offset = 0;
  places[0].len = 12;
  upc_all_fread_list_local_async(f, 1, &memory, 1, places, 0);
  memory.len = 0; /* 7.8.7, 4 */
  CHECK(upc_all_fwait_async(f) == 12);
  for (i = 0; i < 6; i++) {
    for (j = 0; j < 3 && j < THREADS; j++) {
      const struct upc_filevec *v = example[order[i][j]];
      memset(want + v[0].offset, '0' + order[i][j], v[0].len);
      memset(want + v[1].offset, '0' + order[i][j], v[1].len);
    }
    found += !memcmp(file, want, 12);
  }
  CHECK(found > 0 || THREADS < 3);
  /* 7.8.6.2: one thread moves what lies on others; 7.8.6.4. The sums of both lists are the same, offsets rise. */
  fill(3);
  if (MYTHREAD == THREADS - 1) {
    one[0] = 7;
    places[0].offset = 4;
    places[0].len = 4;
    CHECK(upc_all_fwrite_list_shared(f, 2, blocks, 3, places, ALL) == 16);
  } else
    CHECK(upc_all_fwrite_list_shared(f, 0, NULL, 0, NULL, ALL) == 0);
  CHECK(upc_all_fget_size(f) == 112);
  upc_barrier;
  fill(0);
  /* 7.8.6.1, 4: where the sums differ there is an error, on those threads that have it. */
  CHECK(upc_all_fread_list_shared(f, 2, blocks, 3, places, ALL) == (MYTHREAD == THREADS - 1 ? 16 : -1));
  upc_barrier;
  if (MYTHREAD == 0)
    CHECK(cyclic[1] == 3 && cyclic[2] == 6 && cyclic[3] == 9 && one[0] == 7 && cyclic[4] == 0);
  CHECK(upc_all_fseek(f, 0, UPC_SEEK_CUR) == 0); /* 7.8.6, 3 */
  /* 7.8, 4: it is closed when the program ends. */
}

int main(void) {
  common("clause.7.8");
  individual("clause.7.8");
  lists("clause.7.8");
  return clause_done();
}

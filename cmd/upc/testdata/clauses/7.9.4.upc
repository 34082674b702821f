// Non-blocking transfers with handles: 7.9.3 their type, 7.9.4 the functions, 7.9.6 their ends.
#include <upc_relaxed.h>
#include <upc_nb.h>
#include <string.h>
#include "clause.h"

#if !defined(__UPC_NB__) || __UPC_NB__ != 1
#error __UPC_NB__
#endif
#define N 64

shared [N] char a[N * THREADS], b[N * THREADS], c[N * THREADS];

static void wait(upc_handle_t h) {
  while (!upc_sync_attempt(h))
    ;
}

int main(void) {
  int i, next = (MYTHREAD + 1) % THREADS, after = (MYTHREAD + 2) % THREADS, before = (MYTHREAD + THREADS - 1) % THREADS;
  char text[N], back[N], zero[sizeof(upc_handle_t)] = { 0 };
  upc_handle_t h = UPC_COMPLETE_HANDLE, many[N];
  /* 7.9.3, 2: all its bits are 0; 7.9.6.1, 4 and 7.9.6.2, 4: it is complete, again and again. */
  CHECK(!memcmp(&h, zero, sizeof h) && sizeof UPC_COMPLETE_HANDLE == sizeof h);
  CHECK(upc_sync_attempt(h) != 0 && upc_sync_attempt(UPC_COMPLETE_HANDLE) != 0);
  upc_sync(h);
  for (i = 0; i < N; i++)
    text[i] = 'A' + (MYTHREAD + i) % 26;
  /* 7.9.4.3 and 7.9.6.2 */
  upc_sync(upc_memput_nb(&a[N * next], text, N));
  for (i = 0; i < N; i++)
    CHECK(a[N * next + i] == text[i]); /* 7.9.2, 13: this thread sees it */
  upc_barrier;
  for (i = 0; i < N; i++)
    CHECK(a[N * MYTHREAD + i] == 'A' + (before + i) % 26);
  /* 7.9.4.2 and 7.9.6.1 */
  memset(back, 0, N);
  wait(upc_memget_nb(back + 1, &a[N * next + 2], N - 4));
  CHECK(back[0] == 0 && !memcmp(back + 1, text + 2, N - 4) && back[N - 3] == 0);
  /* 7.9.4.1: between two others. 7.9.4.4, at once with it. */
  h = upc_memcpy_nb(&b[N * after], &a[N * next], N);
  wait(upc_memset_nb(&c[N * next + 3], 'z' + 256, 5));
  upc_sync(h);
  upc_barrier;
  for (i = 0; i < N; i++) {
    CHECK(b[N * MYTHREAD + i] == 'A' + ((MYTHREAD + 2 * THREADS - 2) % THREADS + i) % 26);
    CHECK(c[N * MYTHREAD + i] == (i >= 3 && i < 8 ? 'z' : 0));
  }
  upc_barrier;
  /* 7.9.2, 10 to 12: many at once, which read the same source; their ends in another order. */
  for (i = 0; i < N; i++)
    many[i] = upc_memput_nb(&c[N * next + N - 1 - i], &text[i], 1);
  for (i = N; i-- > 0;)
    i % 2 ? upc_sync(many[i]) : wait(many[i]);
  for (i = 0; i < N; i++)
    many[i] = upc_memget_nb(&back[i], &b[N * after + 1], 1);
  for (i = 0; i < N; i++)
    upc_sync(many[(i + N / 2) % N]);
  upc_barrier;
  for (i = 0; i < N; i++)
    CHECK(c[N * MYTHREAD + N - 1 - i] == 'A' + (before + i) % 26 && back[i] == text[1]);
  /* 7.9.2, 9: a transfer can go on beyond a barrier. Nothing to do is done, too. */
  h = upc_memset_nb(&a[N * next], '#', N);
  upc_barrier;
  upc_sync(h);
  wait(upc_memput_nb(&b[N * next], text, 0));
  upc_barrier;
  CHECK(a[N * MYTHREAD] == '#' && a[N * MYTHREAD + N - 1] == '#');
  CHECK(b[N * MYTHREAD] == 'A' + (MYTHREAD + 2 * THREADS - 2) % THREADS % 26);
  return clause_done();
}

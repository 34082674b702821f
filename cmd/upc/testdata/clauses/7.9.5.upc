// Non-blocking transfers without handles: 7.9.5 the functions, 7.9.7 their common end.
#include <upc_relaxed.h>
#include <upc_nb.h>
#include <string.h>
#include "clause.h"

#define N 48

shared [N] char a[N * THREADS], b[N * THREADS], c[N * THREADS];

int main(void) {
  int i, r, next = (MYTHREAD + 1) % THREADS, after = (MYTHREAD + 2) % THREADS, before = (MYTHREAD + THREADS - 1) % THREADS;
  char text[N], back[2 * N];
  upc_handle_t h;
  /* 7.9.7.1, 3 and 7.9.7.2, 3: none is pending. */
  CHECK(upc_synci_attempt() != 0);
  upc_synci();
  for (r = 0; r < 4; r++) {
    for (i = 0; i < N; i++)
      text[i] = 'a' + (MYTHREAD + i + r) % 26;
    /* 7.9.5.3 and 7.9.5.4, in parts, and one end for all. */
    for (i = 0; i < N; i += 8)
      upc_memput_nbi(&a[N * next + i], text + i, 8);
    upc_memset_nbi(&c[N * next + r], '0' + r, 2);
    if (r % 2)
      upc_synci();
    else
      while (!upc_synci_attempt())
        ;
    CHECK(upc_synci_attempt() != 0);
    for (i = 0; i < N; i++)
      CHECK(a[N * next + i] == text[i]); /* this thread sees it */
    upc_barrier;
    for (i = 0; i < N; i++)
      CHECK(a[N * MYTHREAD + i] == 'a' + (before + i + r) % 26);
    CHECK(c[N * MYTHREAD + r] == '0' + r && c[N * MYTHREAD + r + 1] == '0' + r && c[N * MYTHREAD + r + 2] == 0);
    /* 7.9.5.1 and 7.9.5.2: both read the same source. */
    memset(back, 0, sizeof back);
    upc_memget_nbi(back, &a[N * next], N);
    upc_memget_nbi(back + N, &a[N * next + 1], N - 2);
    upc_memcpy_nbi(&b[N * after], &a[N * next], N);
    upc_synci();
    CHECK(!memcmp(back, text, N) && !memcmp(back + N, text + 1, N - 2) && back[2 * N - 2] == 0);
    upc_barrier;
    for (i = 0; i < N; i++)
      CHECK(b[N * MYTHREAD + i] == 'a' + ((MYTHREAD + 2 * THREADS - 2) % THREADS + i + r) % 26);
    upc_barrier;
  }
  /* 7.9.7.2, 4: transfers with handles have ends of their own; those stay valid. */
  h = upc_memput_nb(&a[N * next], "handle", 6);
  upc_memput_nbi(&a[N * next + 6], "implicit", 8);
  upc_synci();
  CHECK(upc_synci_attempt() != 0);
  upc_sync(h);
  upc_barrier;
  for (i = 0; i < 14; i++)
    CHECK(a[N * MYTHREAD + i] == "handleimplicit"[i]);
  return clause_done();
}

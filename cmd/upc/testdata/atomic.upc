// Atomic operations, castability, timers and non-blocking transfers (UPC 1.3, 7.5 to 7.9).
#include <upc_strict.h>
#include <upc_atomic.h>
#include <upc_castable.h>
#include <upc_nb.h>
#include <upc_tick.h>
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#define N 64

shared int64_t count;
shared int32_t word;
shared uint32_t bits;
shared double real;
shared float single[THREADS];
shared void *shared place;
typedef struct node { int v; shared [] struct node *next; } node;
shared [] node *shared head;
upc_atomicdomain_t *shared published;
shared [N] int from[N * THREADS], to[N * THREADS];
shared [3] int a3[3 * THREADS];
int bad;
#define CHECK(e) ((e) ? (void)0 : (void)(bad++, printf("thread %d: line %d\n", MYTHREAD, __LINE__)))

static void numbers(void) {
  int i;
  int64_t old = -1, one = 1, big = INT64_C(1) << 40;
  int32_t w, x, y;
  uint32_t u = 5, v;
  double d = 0.5;
  upc_atomicdomain_t *dom = upc_all_atomicdomain_alloc(UPC_INT64, UPC_ADD | UPC_MAX | UPC_INC | UPC_GET | UPC_SET, UPC_ATOMIC_HINT_LATENCY);
  upc_atomicdomain_t *ints = upc_all_atomicdomain_alloc(UPC_INT, UPC_CSWAP | UPC_SUB | UPC_MIN | UPC_MULT | UPC_DEC, 0);
  upc_atomicdomain_t *flags = upc_all_atomicdomain_alloc(UPC_UINT32, UPC_AND | UPC_OR | UPC_XOR, 0);
  upc_atomicdomain_t *reals = upc_all_atomicdomain_alloc(UPC_DOUBLE, UPC_ADD, UPC_ATOMIC_HINT_THROUGHPUT);
  CHECK(dom != ints && ints != flags && dom != NULL);
  if (MYTHREAD == 0) { published = dom; word = 100; }
  upc_barrier;
  CHECK(published == dom);
  for (i = 0; i < 10; i++) {
    upc_atomic_relaxed(published, NULL, UPC_ADD, &count, &one, NULL);
    upc_atomic_strict(dom, &old, UPC_INC, &count, 0, 0);
    CHECK(old >= 0 && old < 20 * THREADS);
    upc_atomic_relaxed(reals, NULL, UPC_ADD, &real, &d, NULL);
  }
  u = 1u << MYTHREAD;
  upc_atomic_relaxed(flags, &v, UPC_OR, &bits, &u, NULL);
  CHECK((v & u) == 0);
  upc_barrier;
  CHECK(count == 20 * THREADS && real == 5.0 * THREADS && bits == (1u << THREADS) - 1);
  upc_barrier;
  if (MYTHREAD == THREADS - 1) {
    upc_atomic_strict(dom, &old, UPC_SET, &count, &big, NULL);
    CHECK(old == 20 * THREADS);
    upc_atomic_strict(dom, NULL, UPC_MAX, &count, &one, NULL);
    upc_atomic_strict(dom, &old, UPC_GET, &count, NULL, NULL);
    CHECK(old == big);
    x = 99; y = 7;
    upc_atomic_strict(ints, &w, UPC_CSWAP, &word, &x, &y);
    CHECK(w == 100 && word == 100);
    x = 100;
    upc_atomic_strict(ints, &w, UPC_CSWAP, &word, &x, &y);
    CHECK(w == 100 && word == 7);
    x = 3;
    upc_atomic_relaxed(ints, NULL, UPC_MULT, &word, &x, NULL);
    upc_atomic_relaxed(ints, NULL, UPC_SUB, &word, &y, NULL);
    upc_atomic_relaxed(ints, &w, UPC_MIN, &word, &x, NULL);
    CHECK(w == 14 && word == 3);
    upc_atomic_relaxed(ints, NULL, UPC_DEC, &word, NULL, NULL);
    CHECK(word == 2);
    CHECK(upc_atomic_isfast(UPC_INT64, UPC_ADD, &count) >= 0 && !upc_atomic_isfast(UPC_INT, UPC_MULT, &word));
  }
  upc_all_atomicdomain_free(dom);
  upc_all_atomicdomain_free(ints);
  upc_all_atomicdomain_free(flags);
  upc_all_atomicdomain_free(reals);
  upc_all_atomicdomain_free(NULL);
}

/* A list that all threads push nodes on to. */
static void pointers(void) {
  int n = 0, i;
  shared [] node *mine, *was, *now, *seen;
  shared void *p = &a3[1], *q = upc_resetphase(&a3[1]), *r;
  upc_atomicdomain_t *dom = upc_all_atomicdomain_alloc(UPC_PTS, UPC_CSWAP | UPC_GET | UPC_SET, 0);
  for (i = 0; i < 5; i++) {
    mine = upc_alloc(sizeof(node));
    mine->v = 10 * MYTHREAD + i;
    upc_atomic_strict(dom, &seen, UPC_GET, &head, NULL, NULL);
    do {
      was = seen;
      mine->next = was;
      now = mine;
      upc_atomic_strict(dom, &seen, UPC_CSWAP, &head, &was, &now);
    } while (seen != was);
  }
  upc_barrier;
  for (mine = head; mine; mine = mine->next) n += 1000 + mine->v;
  CHECK(n == 5000 * THREADS + 10 * THREADS + 25 * THREADS * (THREADS - 1));
  upc_barrier;
  if (MYTHREAD == 0) {
    upc_atomic_strict(dom, NULL, UPC_SET, &place, &p, NULL);
    /* The comparison ignores the phase. */
    upc_atomic_strict(dom, &r, UPC_CSWAP, &place, &q, &q);
    CHECK(r == p && upc_phaseof(r) == 1 && upc_phaseof(place) == 0);
  }
  upc_all_atomicdomain_free(dom);
}

static void transfers(void) {
  int i, in[N], out[N], peer = (MYTHREAD + 1) % THREADS;
  upc_handle_t h[4], none = UPC_COMPLETE_HANDLE;
  for (i = 0; i < N; i++) { out[i] = 1000 * MYTHREAD + i; from[N * MYTHREAD + i] = -out[i]; }
  CHECK(upc_sync_attempt(none));
  upc_sync(none);
  CHECK(upc_synci_attempt());
  upc_barrier;
  h[0] = upc_memput_nb(&to[N * peer], out, N / 2 * sizeof(int));
  h[1] = upc_memget_nb(in, &from[N * peer], N * sizeof(int));
  h[2] = upc_memcpy_nb(&to[N * peer + N / 2], &from[N * MYTHREAD], N / 4 * sizeof(int));
  h[3] = upc_memset_nb(&to[N * peer + 3 * N / 4], 0x11, N / 4 * sizeof(int));
  while (!upc_sync_attempt(h[1]))
    ;
  for (i = 0; i < N; i++) CHECK(in[i] == -(1000 * peer + i));
  upc_sync(h[0]);
  upc_sync(h[2]);
  upc_sync(h[3]);
  upc_barrier;
  for (i = 0; i < N; i++) {
    int left = (MYTHREAD + THREADS - 1) % THREADS, want = 1000 * left + i;
    if (i >= N / 2) want = -(1000 * left + i - N / 2);
    if (i >= 3 * N / 4) want = 0x11111111;
    CHECK(to[N * MYTHREAD + i] == want);
  }
  upc_barrier;
  upc_memput_nbi(&to[N * peer], out, N / 2 * sizeof(int));
  upc_memcpy_nbi(&to[N * peer + N / 2], &from[N * MYTHREAD], N / 4 * sizeof(int));
  upc_memset_nbi(&to[N * peer + 3 * N / 4], 0, N / 4 * sizeof(int));
  memset(in, 0, sizeof in);
  upc_memget_nbi(in, &from[N * peer], N * sizeof(int));
  upc_synci();
  CHECK(upc_synci_attempt() && in[N - 1] == -(1000 * peer + N - 1));
  upc_barrier;
  CHECK(to[N * MYTHREAD + 1] == 1000 * ((MYTHREAD + THREADS - 1) % THREADS) + 1 && to[N * MYTHREAD + N - 1] == 0);
}

static void casts(void) {
  int t, *p;
  for (t = 0; t < THREADS; t++) {
    upc_thread_info_t info = upc_thread_info(t);
    p = upc_cast(&from[N * t + 1]);
    CHECK((p != NULL) == (info.guaranteedCastable == UPC_CASTABLE_ALL));
    CHECK((info.guaranteedCastable & UPC_CASTABLE_STATIC) == (info.probablyCastable & UPC_CASTABLE_STATIC));
    if (p != NULL) CHECK(*p == from[N * t + 1]);
  }
  CHECK(upc_thread_info(MYTHREAD).guaranteedCastable == UPC_CASTABLE_ALL && upc_cast(&from[N * MYTHREAD]) == (void *)&from[N * MYTHREAD]);
  CHECK(upc_cast(NULL) == NULL);
}

int main(void) {
  upc_tick_t start = upc_ticks_now(), end;
#if __UPC_ATOMIC__ + __UPC_CASTABLE__ + __UPC_NB__ + __UPC_TICK__ != 4 || UPC_TICK_MIN != 0 || UPC_CSWAP < UPC_MAX
#error the macros of the libraries
#endif
  numbers();
  pointers();
  transfers();
  casts();
  end = upc_ticks_now();
  CHECK(upc_ticks_to_ns(end - start) <= UPC_TICK_MAX / 2);
  printf("thread %d: %d wrong\n", MYTHREAD, bad);
  return 0;
}

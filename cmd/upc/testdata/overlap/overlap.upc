/* How many accesses to the other thread come one after the other in loops of thread 0: the time that a
   loop takes for each of its accesses, in times of one alone, by the clock of the simulator. What is read is checked, too. */
#include <upc_relaxed.h>
#include <upc_tick.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define N 512
#define B 4

shared int a[N * THREADS], list[N * THREADS];
shared [B] long b[N * B * THREADS];
shared [N] int far[N * THREADS];
shared long cyclic[N * THREADS];
shared int chain[N * THREADS];

static int idx[N], wrong;
static double one;
static upc_tick_t begun;

static void begin(void) { begun = upc_ticks_now(); }

static void end(const char *what, int accesses) {
  double each = (upc_ticks_now() - begun) / one / accesses;
  printf("%s: %s\n", what, each < 0.5 ? "together" : each > 0.9 ? "one by one" : "some together");
}

static void check(int ok, int line) {
  if (!ok) {
    wrong++;
    printf("wrong at line %d\n", line);
  }
}

/* Odd elements of cyclic arrays are thread 1's. */
static void fill(void) {
  for (int i = 0; i < N; i++)
    idx[i] = (i * 6 + 1) % N | 1;
}

static void gathers(void) {
  int i, j, k;
  long s = 0, want = 0;
  for (i = 0; i < N; i++)
    want += 3 * idx[i];

  begin();
  for (i = 0; i < N; i++)
    s += a[idx[i]];
  end("for", N);
  check(s == want, __LINE__);

  s = 0;
  begin();
  for (i = 0; i < N; i++)
    s += a[idx[i]] + upc_threadof(&a[idx[i]]) + abs(-i) - labs(i) + (isdigit('a') != 0);
  end("for, with functions of the library", N);
  check(s == want + N, __LINE__);

  s = 0;
  begin();
  for (i = 0; i < N; i++) {
    int j = idx[i];
    s += a[j];
  }
  end("for, by a local", N);
  check(s == want, __LINE__);

  s = 0;
  begin();
  for (i = 0; i < N; i++) {
    j = idx[i];
    k = j + THREADS;
    s += a[k - THREADS];
  }
  end("for, by variables of the function", N);
  check(s == want && j == idx[N - 1] && k == j + THREADS, __LINE__);

  s = 0;
  begin();
  for (i = 0; i < N; i++) {
    int j = list[idx[i]];
    {
      int i = j;
      s += a[i];
    }
    {
      int i = j + 2 * THREADS;
      s += a[i - 2 * THREADS];
    }
  }
  end("for, by a shared list", 3 * N);
  check(s == 2 * want, __LINE__);

  begin();
  for (i = 0; i < N; i++) {
    int j = idx[i];
    long v = a[j];
    b[j * B] = v + 1;
  }
  end("for, from one array to another", 2 * N);
  for (i = 0, s = 0; i < N; i++)
    s += b[idx[i] * B];
  check(s == want + N, __LINE__);

  s = i = 0;
  begin();
  while (i < N) {
    s += a[idx[i]];
    i++;
  }
  end("while", N);
  check(s == want && i == N, __LINE__);

  s = 0;
  i = 3;
  begin();
  for (; i < N; i++)
    s += a[idx[i]];
  end("for without a beginning", N);
  check(s == want - 3 * (idx[0] + idx[1] + idx[2]), __LINE__);
}

/* Each thread has the iterations of its own elements; thread 1 waits meanwhile. */
static void shares(void) {
  int i, n = (N - B) * THREADS;
  long s = 0, want = 0;
  shared [] int *there = (shared [] int *)&far[N], *here = (shared [] int *)&far[0];

  begin();
  upc_forall (i = 0; i < n; i++; i)
    s += a[i + 1];
  end("upc_forall, an integer", N - B);
  for (i = 0; i < n; i += THREADS)
    want += 3 * (i + 1);
  check(s == want, __LINE__);

  begin();
  upc_forall (i = 0; i < n; i++; &cyclic[i]) {
    int j = i + 1;
    cyclic[i] = a[j];
  }
  end("upc_forall, an element", N - B);
  check(i == n, __LINE__);
  for (i = s = 0; i < n; i += THREADS)
    s += cyclic[i];
  check(s == want, __LINE__);

  s = want = 0;
  begin();
  upc_forall (i = 3; i < n; i++; &b[i])
    s += b[i + B] + b[i];
  end("upc_forall, blocks", N - B);
  check(i == n, __LINE__);
  for (i = 3; i < n; i++)
    if (i / B % THREADS == 0)
      want += b[i + B] + b[i];
  check(s == want, __LINE__);

  s = 0;
  begin();
  upc_forall (i = 0; i < N; i++; &here[i])
    s += there[i] + here[i];
  end("upc_forall, a pointer", N);
  check(s == 14 * N, __LINE__);

  s = want = 0;
  begin();
  upc_forall (i = 0; i < 2 * N - 1; i++; i / 2)
    s += a[i | 1];
  end("upc_forall, an expression", N);
  check(i == 2 * N - 1, __LINE__);
  for (i = 0; i < 2 * N - 1; i += 4)
    want += 2 * a[i + 1];
  check(s == want, __LINE__);

  begin();
  upc_forall (int i = 0; i < N; i++; continue)
    there[i] = i;
  end("upc_forall, of all", N);
  check(there[0] == 0 && there[N - 1] == N - 1, __LINE__);
}

/* What one iteration writes another may read, or may use to know where it reads. */
static void aliases(void) {
  int i, j, model[N];
  long s = 0, want = 0;
  int *own = (int *)&chain[0];

  for (i = 0; i < N; i++)
    idx[i] = i;
  begin();
  for (i = 0; i < N - 1; i++) {
    int j = idx[i] | 1;
    idx[i + 1] = j + 2 * (i % 2);
    s += a[j];
  }
  end("a list that changes", N);
  for (i = 0, j = 1; i < N - 1; i++) {
    want += 3 * j;
    j = j + 2 * (i % 2) | 1;
  }
  check(s == want, __LINE__);
  fill();

  s = want = 0;
  j = 1;
  begin();
  for (i = 0; i < N; i++) {
    s += a[j];
    j = idx[i];
  }
  end("a variable of the iteration before", N);
  for (i = 0; i < N; i++)
    want += 3 * (i == 0 ? 1 : idx[i - 1]);
  check(s == want, __LINE__);

  s = want = 0;
  begin();
  for (i = 0; i < N; i++) {
    int j = 1;
    if (i % 2)
      j = idx[i];
    s += a[j];
  }
  end("a variable that changes", N);
  for (i = 0; i < N; i++)
    want += 3 * (i % 2 ? idx[i] : 1);
  check(s == want, __LINE__);

  for (i = 0; i < 2 * N; i++)
    chain[i] = 1;
  begin();
  for (i = 1; i < N; i++) {
    int j = 2 * i + 1;
    chain[j] = chain[j - 2] + 1;
  }
  end("a chain", 2 * N);
  check(chain[1] == 1 && chain[2 * N - 1] == N, __LINE__);

  /* own[k] is chain[k * THREADS]. */
  s = 0;
  begin();
  for (i = 0; i < N - 1; i++) {
    int j = own[i] + i;
    own[i + 1] = i + 3;
    s += chain[j % N | 1];
  }
  end("the own part, by a pointer", N);
  for (i = 0, j = 1, want = 0; i < N - 1; i++) {
    int k = j % N | 1;
    want += k / 2 + 1;
    j = i + 3 + i + 1;
  }
  check(s == want, __LINE__);

  for (i = 0; i < N; i++)
    chain[2 * i + 1] = i;
  begin();
  upc_forall (i = 0; i < (N - 1) * THREADS; i++; i) {
    int j = i + 1;
    chain[(j + 2) % (N * THREADS)] = chain[j] + 1;
  }
  end("upc_forall, a chain", 2 * N);
  for (i = 0; i < N; i++)
    check(chain[2 * i + 1] == i, __LINE__);
}

int main(void) {
  int i;
  upc_forall (i = 0; i < N * THREADS; i++; &a[i]) {
    a[i] = 3 * i;
    list[i] = i;
  }
  upc_forall (i = 0; i < N * B * THREADS; i++; &b[i])
    b[i] = i;
  for (i = 0; i < N; i++)
    far[MYTHREAD * N + i] = 7;
  fill();
  upc_barrier;
  if (MYTHREAD == 0) {
    int s = 0;
    begin();
    for (i = 0; i < 32; i++) {
      s = a[(s & 1) + 2 * i + 1];
      s &= 2;
    }
    one = (upc_ticks_now() - begun) / 32.0;
    gathers();
    shares();
    aliases();
    printf("%d wrong\n", wrong);
  }
  upc_barrier;
  return 0;
}

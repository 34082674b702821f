// Loops in which two names lead to one place, or one name to two variables: what the compiler knows of
// them must not go further than C lets it.
#include <upc_relaxed.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#define N 8

shared [N] int a[N * THREADS];
shared int b[N * THREADS];
shared union {
  int i;
  float f;
} u[N * THREADS];
shared int x;
shared [4] int c[8 * THREADS];
shared int wrong[THREADS];

static void check(int ok, int what) {
  if (!ok) {
    wrong[MYTHREAD] += 1;
    printf("thread %d: %d\n", MYTHREAD, what);
  }
}

int main(void) {
  int i, turns = 0, sum = 0, other = (MYTHREAD + 1) % THREADS;
  size_t three = 3;
  int *own = (int *)&a[MYTHREAD * N], *bound = (int *)&b[MYTHREAD];
  shared [] int *p;

  /* The thread's part, written by a pointer and read by its name. */
  for (i = 1; i < N; i++)
    own[i] = a[MYTHREAD * N + i - 1] + 1;
  check(own[N - 1] == N - 1, 1);

  /* A bound and an index that the loop writes by another name. */
  *bound = 2;
  for (i = 0; i < *bound; i++) {
    b[MYTHREAD] = 5;
    turns++;
  }
  check(turns == 5, 2);
  for (i = 0; i < N; i++) {
    own[i] = 0;
    b[MYTHREAD + i * THREADS] = i;
  }
  for (i = 0; i < N - 1; i++) {
    a[MYTHREAD * N + i + 1] = i + 1;
    sum += b[MYTHREAD + own[i] * THREADS];
  }
  check(sum == 21, 3);

  /* Members of a union are one place of two types. */
  sum = 0;
  for (i = 0; i < N; i++) {
    u[i * THREADS + other].f = 1;
    sum += u[i * THREADS + other].i == 0x3f800000;
  }
  check(sum == N, 4);

  /* Another variable of the counter's name. */
  if (MYTHREAD == 0)
    x = 3;
  upc_barrier;
  sum = 0;
  for (i = 0; i < N; i++) {
    int i = 100;
    sum += x + i;
  }
  check(sum == N * 103, 5);
  p = (shared [] int *)upc_alloc(N * sizeof(int));
  for (i = 0; i < N; i++)
    p[i] = 1;
  sum = 0;
  for (int i = 0; i < N; i++) {
    sum += p[i];
    int i = 7;
    sum += i;
  }
  check(sum == 8 * N, 6);

  /* An unsigned bound makes the counter unsigned, in which -1 is the largest number. */
  sum = 0;
  for (i = -1; i < three; i++)
    sum += p[i + 1];
  check(sum == 0 && i == -1, 7);
  upc_forall (i = -1; i < three; i++; &c[i + 1])
    sum += c[i + 1] + 1;
  check(sum == 0 && i == -1, 8);

  /* The step to the thread's next iteration leads beyond the last number. */
  turns = 0;
  upc_forall (i = INT_MAX - 10; i < INT_MAX && turns < 100; i++; i)
    turns++;
  upc_forall (i = INT_MAX - 10; i < INT_MAX; i++; i)
    if (turns < 100)
      turns++;
    else
      upc_global_exit(1);
  check(turns > 0 && turns <= 2 * 10 / THREADS + 2, 9);

  upc_barrier;
  if (MYTHREAD == 0) {
    sum = 0;
    for (i = 0; i < THREADS; i++)
      sum += wrong[i];
    printf("aliases: %d wrong\n", sum);
  }
  return 0;
}

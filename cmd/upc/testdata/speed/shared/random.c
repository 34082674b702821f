/* Updates of random elements of a shared table, which gcc has as a private one (docs/upc.md): the least time of one, ns, and an element. */
#include <stdio.h>
#include <stdint.h>
#include <time.h>
#ifdef __UPC__
#include <upc_relaxed.h>
#else
#define shared
#define THREADS 1
#endif
#ifndef LOG
#define LOG 22
#endif
#define SIZE (1L << LOG)
#define UPDATES (1L << 22)

shared uint64_t T[SIZE * THREADS];

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
  uint64_t ran = 1;
  double least = 1e9;
  int k;
  long i;
  for (i = 0; i < SIZE; i++)
    T[i] = i;
  for (k = 0; k < 5; k++) {
    double t = now();
    for (i = 0; i < UPDATES; i++) {
      ran = (ran << 1) ^ ((int64_t)ran < 0 ? 7 : 0);
      T[ran & (SIZE - 1)] ^= ran;
    }
    t = now() - t;
    if (t < least)
      least = t;
  }
  printf("%.2f ns an update, %lx\n", least / UPDATES * 1e9, (unsigned long)T[5]);
  return 0;
}

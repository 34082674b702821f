// Program startup and termination: every thread calls main, with the arguments.
#include <upc.h>
#include <stdlib.h>
#include <string.h>
#include "clause.h"

shared int started[THREADS], tentative, given = 3 + 4;
shared [2] int list[2 * THREADS];

static void leave(void) { exit(clause_done()); }

int main(int argc, char **argv) {
  int i;
  /* 5.1.2, 3: a barrier at the beginning; what has no initializer is zero on all threads. */
  CHECK(tentative == 0 && given == 7 && list[2 * MYTHREAD + 1] == 0);
  CHECK(argc >= 1 && strlen(argv[0]) > 0 && argv[argc] == NULL);
  upc_barrier;
  started[MYTHREAD]++;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    CHECK(started[i] == 1);
  /* 5.1.2.2, 2: a call of exit ends a thread as a return from main does. */
  if (MYTHREAD % 2)
    leave();
  return clause_done();
}

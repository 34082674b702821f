// A flag that one thread sets after so many accesses as the argument says, as another reads it: if
// that has not seen it, their writes to n race.
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

shared int n;
strict shared int flag, other;

int main(int argc, char **argv) {
  int i;
  upc_barrier;
  if (MYTHREAD == 0) {
    for (i = 0; i < atoi(argv[1]); i++) other += 1;
    n = 7;
    flag = 1;
  } else if (MYTHREAD == 1 && !flag) {
    n = 8;
    printf("old flag\n");
  }
  upc_barrier;
  return 0;
}

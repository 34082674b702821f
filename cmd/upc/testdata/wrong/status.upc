// One thread ends with a status. The others go on to their ends, and the status is the job's.
#include <stdio.h>
#include <stdlib.h>
#include <upc_relaxed.h>
strict shared int ended;
shared int words[THREADS];
int main(void) {
  int i;
  if (MYTHREAD == 1) {
    ended = 1;
    exit(4);
  }
  while (!ended)
    ;
  for (i = 0; i < 100; i++)
    words[1] = words[MYTHREAD] + 1;
  printf("thread %d went on\n", MYTHREAD);
  return 0;
}

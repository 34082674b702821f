#include <upc_relaxed.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
/* What programs seldom write: each line of what it prints was wrong once. */
int tentative = 5;
extern int tentative;
int tentative;
#if ULONG_MAX > 4294967295UL && -1 > 0u && !(0 && 1 / 0)
int wide = 1;
#else
int wide = 0;
#endif
int twice(void) {
  int i, n = 0;
  for (i = 0; i < 10; i++, i++) n++;
  return n;
}
int main(void) {
  if (MYTHREAD == 0) {
    printf("tentative %d %d\n", tentative, wide);
    printf("twice %d\n", twice());
    printf("strtoul %lx %lx %lx %ld\n", strtoul("18446744073709551615", NULL, 10), strtoul("-1", NULL, 10), strtoul("99999999999999999999", NULL, 10), strtol("-9223372036854775808", NULL, 10));
    printf("width [%10c] [%-3c] [%010d] [%-10s]\n", 'x', 'y', 10, "z");
  }
  return 0;
}

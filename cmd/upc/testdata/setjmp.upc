#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* setjmp and longjmp, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#define FORALL(a, b, c, d) upc_forall (a; b; c; d)
shared int sum[THREADS];
#else
#define MYTHREAD 0
#define THREADS 1
#define FORALL(a, b, c, d) for (a; b; c)
static int sum[1];
#endif
static jmp_buf top;
static char message[80];
static void fail(int code, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  vsprintf(message, format, ap);
  va_end(ap);
  longjmp(top, code);
}
static int depth(int n, int limit) {
  int here[16];
  here[n & 15] = n;
  if (n == limit) fail(n, "too deep at %d", here[n & 15]);
  return depth(n + 1, limit) + here[n & 15];
}
static double ratio(int a, int b) {
  if (b == 0) fail(0, "%d by zero", a);
  return (double)a / b;
}
/* Exceptions by macros, nested. */
static jmp_buf *handler;
#define TRY do { jmp_buf *outer = handler, buf; int code; handler = &buf; code = setjmp(buf); if (code == 0) {
#define CATCH(e) handler = outer; } else { int e = code; handler = outer; {
#define END } } } while (0)
#define THROW(e) longjmp(*handler, e)
static int risky(int n) {
  volatile int steps = 0;
  TRY
    steps++;
    TRY
      steps += 10;
      if (n > 1) THROW(n);
      steps += 100;
    CATCH(e)
      steps += 1000 * e;
      if (e > 2) THROW(e + 1);
    END;
    steps += 10000;
  CATCH(e)
    steps = -steps - e;
    return steps * 2;
  END;
  return steps;
}
/* A generator of tries, from which it returns several times; a switch, a label, a loop around. */
static int several(void) {
  static jmp_buf env;
  volatile int tries = 0, log = 0;
  int i;
again:
  switch (setjmp(env)) {
  case 0: log = log * 10 + 1; break;
  case 1: log = log * 10 + 2; break;
  case 5: log = log * 10 + 3; goto out;
  default: log = log * 10 + 4;
  }
  if (++tries == 3) goto again;
  if (tries < 6) longjmp(env, tries == 1 ? 0 : tries == 2 ? 7 : tries);
out:
  for (i = 0; i < 3; i++) {
    volatile int once = 0;
    jmp_buf local;
    if (setjmp(local) != 0) { log += 1000000; continue; }
    if (i != 1 && !once) longjmp(local, 9);
    log += 100000000;
  }
  return log;
}
static int compare(const void *a, const void *b) {
  if (*(const int *)a == 13 || *(const int *)b == 13) fail(13, "unlucky");
  return *(const int *)a - *(const int *)b;
}
static void unwind(int n) { if (n == 0) longjmp(top, 77); unwind(n - 1); }
static int counted(void) {
  int k;
  volatile int n = 0;
  for (k = 0; k < 1000; k++) {
    if (setjmp(top) == 0) unwind(k % 20);
    n++;
  }
  return n;
}
/* An array whose length is computed in a loop that a longjmp leads into; two declarations, of which the second jumps. */
static int arrays(void) {
  volatile int i, n = 0, sum = 0;
  for (i = 1; i < 5; i++) {
    int list[i * 3], k;
    jmp_buf env;
    for (k = 0; k < i * 3; k++) list[k] = k * i;
    if (setjmp(env) < 2) { n++; longjmp(env, n % 3 + 1); }
    for (k = 0; k < (int)(sizeof list / sizeof *list); k++) sum += list[k];
  }
  {
    jmp_buf env;
    int first = (n++, n), code = setjmp(env), after = first + code;
    if (code < 3 && n < 100) longjmp(env, code + 1);
    if ((sigsetjmp(env, code) == 0 && n > 100) || after < 0) sum += 100000;
    if (setjmp(env) == 0 ? n : 0) longjmp(env, 1);
    return sum * 100 + n + after;
  }
}
/* exit past setjmp. */
static int quit(void) { if (setjmp(top) == 0) exit(0); return 1; }
static int named(int n) { at0: if (n++ < 3) goto at0; if (setjmp(top)) { at1: return n; } goto at1; }
static void looped(int i) { if (i >= 0) fail(3, "from a loop"); }
int main(void) {
  int code, k, list[4] = {3, 13, 2, 1};
  volatile int round = 0;
  if ((code = setjmp(top)) == 0) {
    k = depth(0, 9);
    printf("not here\n");
  } else if (MYTHREAD == 0) {
    printf("%d %s\n", code, message);
  }
  if (!setjmp(top)) {
    if (MYTHREAD == 0) printf("%g\n", ratio(6, 4));
    ratio(7, 0);
  } else if (MYTHREAD == 0) {
    printf("%s\n", message);
  }
  if (MYTHREAD == 0) {
    for (k = 0; k < 5; k++) printf("%d ", risky(k));
    printf("\n%d %d\n", several(), counted());
    if (setjmp(top) == 0) qsort(list, 4, sizeof *list, compare);
    else printf("%s\n", message);
  }
  /* Out of a upc_forall, after which the next one is shared out again. */
  {
    int i;
    if (setjmp(top) == 0) { FORALL(i = 0, i < THREADS, i++, i) looped(i); }
    FORALL(i = 0, i < THREADS, i++, i) { sum[MYTHREAD]++; looped(-1); }
    if (sum[MYTHREAD] != 1) printf("%d\n", sum[MYTHREAD]);
  }
  round = setjmp(top);
  if (round < 3) longjmp(top, round + 1);
  if (MYTHREAD == 0) printf("%d %d %d\n", round, named(1), arrays());
  return quit();
}

#include <setjmp.h>
#include <signal.h>
#include <upc.h>
static sigjmp_buf env;
static void handle(int number) { siglongjmp(env, 1); }
int main(void) {
  volatile int none = 0;
  if (MYTHREAD) return 0;
  signal(SIGFPE, handle);
  if (sigsetjmp(env, 1)) return 5;
  return 7 / none;
}

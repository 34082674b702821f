#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include <upc.h>
static sigjmp_buf env;
static void handle(int number) { siglongjmp(env, 1); }
int main(void) {
  volatile int go = 1;
  if (MYTHREAD == 0) {
    signal(SIGUSR2, handle);
    if (sigsetjmp(env, 1)) return 5;
    kill(getpid(), SIGUSR2);
    while (go);
  }
  return 0;
}

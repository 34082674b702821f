#include <upc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/time.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/param.h>
#include <signal.h>
#include <locale.h>
#include <fenv.h>
#include <iso646.h>
#include <inttypes.h>
#include <time.h>
#include <math.h>
#include <libgen.h>
#include <alloca.h>
#include <malloc.h>
#include <values.h>

static int caught;
static void on_signal(int s) { caught = s; }
static void bye(void) { if (MYTHREAD == 0) printf("bye\n"); }
static void bye2(void) { if (MYTHREAD == 0) printf("bye first\n"); }

void typeGeneric(void);
void asGCC(void);

static double wall(void) {
  struct timeval tv;
  struct timezone tz;
  gettimeofday(&tv, &tz);
  return tv.tv_sec + tv.tv_usec * 1e-6;
}

static void options(int argc, char **argv) {
  int c, n = 0, v = 0, i = 0;
  const char *file = "none";
  static int flag;
  static struct option longs[] = {
    {"size", required_argument, 0, 's'}, {"verbose", no_argument, NULL, 'v'}, {"flag", no_argument, &flag, 7}, {"opt", optional_argument, 0, 'o'}, {0, 0, 0, 0}
  };
  opterr = 0;
  while ((c = getopt_long(argc, argv, "n:vf:", longs, &i)) != -1)
    switch (c) {
    case 'n': n = atoi(optarg); break;
    case 's': n += 100 * atoi(optarg); break;
    case 'v': v++; break;
    case 'f': file = optarg; break;
    case 'o': printf("opt %s\n", optarg ? optarg : "-"); break;
    case 0: printf("flag %d\n", flag); break;
    case '?': printf("unknown %c\n", optopt ? optopt : '-'); break;
    }
  printf("%d %d %s;", n, v, file);
  for (; optind < argc; optind++)
    printf(" %s", argv[optind]);
  printf("\n");
}

int main(int argc, char **argv) {
  char name[64];
  int fd;
  struct stat st;
  struct rusage ru;
  struct utsname un;
  struct tms tm;
  struct tm *t;
  time_t zero = 86400 * 365;
  if (MYTHREAD != 0) return 0;
  atexit(bye);
  atexit(bye2);
  char *args[] = {"prog", "in.txt", "-vn", "12", "--size=3", "-x", "out", "--verb", "--flag", "--opt=a", "--opt", "-fname", "--", "-n", NULL};
  options(14, args);
  FILE *f = fopen("/nonexistent/x", "r");
  if (f == NULL) printf("%d %s\n", errno == ENOENT, strerror(errno));
  errno = 0;
  strtol("99999999999999999999", NULL, 10);
  printf("%d %s\n", errno, strerror(errno));
  sprintf(name, "h1.%d", (int)getpid());
  fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(fd, "hello world", 11) != 11) perror("write");
  lseek(fd, 6, SEEK_SET);
  char buf[16] = {0};
  printf("%zd %s\n", read(fd, buf, sizeof buf), buf);
  if (fstat(fd, &st) == 0) printf("%ld %d %o\n", (long)st.st_size, S_ISREG(st.st_mode), st.st_mode & 0777);
  close(fd);
  printf("%d %d\n", close(fd), errno == EBADF);
  printf("%d %d\n", access(name, R_OK), access("/nonexistent", F_OK));
  unlink(name);
  printf("%d %d\n", stat(name, &st), errno);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  printf("caught %d %d\n", caught, signal(SIGUSR1, SIG_IGN) == on_signal);
  raise(SIGUSR1);
  printf("%s %s\n", setlocale(LC_ALL, ""), localeconv()->decimal_point);
  printf("%d %d\n", fegetround() == FE_TONEAREST, not 1 or (3 bitand 2));
  printf("%" PRId64 " %" PRIu32 " %" PRIxPTR "\n", (int64_t)-5, (uint32_t)7, (uintptr_t)255);
  double t0 = wall();
  usleep(2000);
  sleep(0);
  printf("%d\n", wall() - t0 >= 0.002);
  printf("%d %d\n", getrusage(RUSAGE_SELF, &ru), uname(&un));
  printf("%d\n", strcmp(un.sysname, "Linux"));
  printf("%d %d\n", times(&tm) >= 0, sysconf(_SC_PAGESIZE) >= 4096);
  t = gmtime(&zero);
  strftime(buf, sizeof buf, "%Y-%m-%d", t);
  printf("%s %s", buf, asctime(t));
  printf("%ld\n", (long)mktime(t));
  printf("%d %d %d\n", fpclassify(1.0) == FP_NORMAL, isnormal(0.0), isgreater(2.0, 1.0));
  char *a = alloca(100);
  strcpy(a, "alloca");
  printf("%s %s\n", a, basename(strdup("/a/b/c.txt")));
  void *al = memalign(256, 1000);
  printf("%d\n", (int)((uintptr_t)al % 256));
  free(al);
  printf("%d %d\n", MIN(3, 4), isatty(1));
  char *sp = strdup("a,b;c"), *save, *q;
  for (q = strtok_r(sp, ",;", &save); q; q = strtok_r(NULL, ",;", &save)) printf("[%s]", q);
  printf("\n");
  struct timespec ts = {0, 1000};
  nanosleep(&ts, NULL);
  clock_gettime(CLOCK_MONOTONIC, &ts);
  gethostname(name, sizeof name);
  printf("%d %zu\n", strlen(name) > 0, strnlen("abc", 2));
  srandom(1);
  random();
  bupc_tick_t began = bupc_ticks_now();
  shared int *old = upc_local_alloc(2, 8);
  int four[4] = {1, 2, 3, 4}, back[4];
  bupc_handle_t h = bupc_memput_async(old, four, sizeof four);
  bupc_waitsync(h);
  upc_memget_handle_t g = upc_memget_async(back, old, sizeof back);
  upc_waitsync(g);
  bupc_poll();
  printf("%d %d %d\n", back[3], (int)upc_threadof(old), bupc_ticks_to_us(bupc_ticks_now() - began) < 60000000);
  upc_free(old);
  typeGeneric();
  asGCC();
  exit(0);
}

#include <stdio.h>
#include <string.h>
/* Cases inside other statements and gotos into blocks, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#define FORALL(a, b, c, d) upc_forall (a; b; c; d)
shared int flag;
#else
#define MYTHREAD 0
static int flag;
#define upc_barrier
#define FORALL(a, b, c, d) for (a; b; c)
#endif
/* Duff's device. */
static void send(char *to, const char *from, int count) {
  int n = (count + 7) / 8;
  switch (count % 8) {
  case 0: do { *to++ = *from++;
  case 7:      *to++ = *from++;
  case 6:      *to++ = *from++;
  case 5:      *to++ = *from++;
  case 4:      *to++ = *from++;
  case 3:      *to++ = *from++;
  case 2:      *to++ = *from++;
  case 1:      *to++ = *from++;
          } while (--n > 0);
  }
}
/* A coroutine as Simon Tatham writes it. */
#define BEGIN(s) switch (s) { case 0:
#define YIELD(s, v) do { s = __LINE__; return v; case __LINE__:; } while (0)
#define END }
struct walk { int state, i, j; };
static int walk(struct walk *w) {
  BEGIN(w->state)
  for (w->i = 0; w->i < 3; w->i++) {
    for (w->j = 0; w->j < w->i; w->j++) {
      if (w->j == 1) continue;
      YIELD(w->state, w->i * 10 + w->j);
    }
    YIELD(w->state, -w->i);
  }
  END
  return 99;
}
/* Cases in an if and its else, in a block, before a label, of a loop that has break and continue. */
static int grade(int x, int y) {
  int sum = 0;
  switch (x) {
    int z;
  case 1:
    if (y > 3) {
      sum += 1;
      if (y > 5) break;
  case 2:
      sum += 10;
    } else
  case 3:
      sum += 100;
    z = sum;
    {
      int w = 1000;
  again:
  case 4:
      w = 2000;
      sum += w;
    }
    if (sum < 4000) goto again;
    break;
  case 5:
    while (y-- > 0) {
      if (y % 3 == 2) continue;
      switch (y) { case 7: sum += 3; break; default: sum++; }
  default:
      sum += 5;
      for (z = 0; ; z++) if (z * z > y) break;
      sum += z * 7;
      if (sum > 60) break;
    }
    sum = -sum;
  }
  return sum;
}
static int bare(int x) {
  int n = 0;
  switch (x) case 3: n += 5;
  switch (x) for (;;) { case 1: n++; case 2: if (++n > 4) break; }
  switch (x) n = 77;
  return n;
}
/* goto into the body of a loop, an if, an else, past initialisers. */
static int enter(int way) {
  int n = 0, i = 5;
  if (way == 1) goto loop;
  if (way == 2) goto then;
  if (way == 3) goto other;
  for (i = 0; i < 4; i++) {
    int step = i * 2 + 1;
  loop:
    step = i < 3 ? step : 9;
    n += step + i;
    if (n > 50) goto done;
  }
  if (n > 10) {
    int a[3] = {1, 2, 3};
  then:
    a[1] = 4;
    n += 100 + a[1];
    if (way == 2 && n < 250) goto then;
  } else {
  other:
    n += 1000;
    if (n < 3000) goto other;
    if (way == 3) { way = 2; goto then; }
  }
done:
  return n * 10 + i;
}
/* A parser's states, which jump between the cases of a switch. */
static int states(const char *s) {
  int words = 0, numbers = 0, other = 0;
  for (; *s; s++) {
    switch (*s) {
    case ' ': continue;
    case '#': goto out;
    case '0': case '1': case '2':
    number:
      numbers++;
      while (s[1] >= '0' && s[1] <= '9') s++;
      break;
    case '-':
      if (s[1] >= '0' && s[1] <= '9') goto number;
      goto unknown;
    default:
      if (*s >= 'a' && *s <= 'z') {
        words++;
        while (s[1] >= 'a' && s[1] <= 'z') s++;
        if (s[1] == '(') { s++; goto number; }
        break;
      }
    unknown:
      other++;
    }
  }
out:
  return words * 100 + numbers * 10 + other;
}
/* What never runs, loops from which nothing returns, a constant condition, a name like the compiler's. */
static int never(int n) {
  int at1 = n;
  if (0) {
  error:
    return -at1;
  }
  if (n > 3) goto error;
  while (1) {
    if (n++ > 2) goto at3;
    if (0) { at3: return n * 2; }
  }
  goto lost;
lost:
  return 5;
}
static int dead(int n) {
  return n + 1;
  goto last;
last:
  return n;
}
static int retry(int fail) {
  int tries = 0;
  do {
    int wait = 1;
    if (tries) {
  backoff:
      wait *= 2;
      if (wait < 20) goto backoff;
    }
    if (++tries < fail) continue;
    if (fail == 7) goto backoff;
    return tries * 100 + wait;
  } while (tries < 4);
  return -tries;
}
/* goto from a case into a block of another one, and of none. */
static int across(int x) {
  int n = 0;
  switch (x) {
    { before: n += 1000; }
  case 1: { inner: n++; } break;
  case 2: n = 10; goto inner;
  case 3: if (n < 2000) goto before;
    { { if (n > 9000) { deep: n += 7; } } n += 5; break; }
  default: n += 100; if (n < 300) goto deep;
  }
  return n;
}
/* default in the middle of a switch that a jump leads into, with what falls into it and out of it. */
static int middle(int x) {
  int n = 0;
  switch (x) {
  case 1: n = 1;
  case 2: n = n * 10 + 2;
  default: n = n * 10 + 9; if (x > 7) { again: n++; break; }
  case 3: n = n * 10 + 3; if (n > 2000) goto again;
  case 4: n = n * 10 + 4; break;
  case 5: n = 5;
  }
  return n;
}
/* continue in such a switch, of loops that nothing leads into. */
static int skips(int way) {
  int i, n = 0, tries = 0;
  for (i = 0; i < 6; i++) {
    switch (i) {
    case 1: if (way) { more: n += 7; tries++; continue; }
    case 2: n++; continue;
    case 4: if (tries < 3) goto more; break;
    default: n += 20; if (i == 5) goto more;
    }
    n += 100;
  }
  FORALL(i = 0, i < 6, i++, 0) {
    switch (i % 3) {
    case 0: { twice: n += 1000; } continue;
    case 1: if (i > 2) goto twice; break;
    default: n += 5000; continue;
    }
    n += 10000;
  }
  return n;
}
int main(void) {
  char to[32];
  int i, k;
  struct walk w = {0, 0, 0};
  if (MYTHREAD == 0) {
    for (i = 1; i < 20; i += 3) {
      memset(to, '.', sizeof to);
      send(to, "abcdefghijklmnopqrstuvwxyz", i);
      printf("%.24s\n", to);
    }
    while ((k = walk(&w)) != 99) printf("%d ", k);
    for (i = 0; i < 7; i++)
      for (k = 2; k < 11; k += 2) printf("%d%c", grade(i, k), k == 10 ? '\n' : ' ');
    for (i = 0; i < 4; i++) printf("%d %d %d\n", bare(i), enter(i), retry(i * 2 + 1));
    printf("%d %d %d\n", states("ab 12 -7 f(2) - %"), states("-x 0 # 1 2"), states(""));
    printf("%d %d\n", never(1), never(9) + dead(0));
    for (i = 0; i < 10; i++) printf("%d %d %d\n", across(i), middle(i), skips(i % 2));
  }
  /* A loop that is entered in its body and waits for another thread. */
  upc_barrier;
  if (MYTHREAD == 0) flag = 1;
  k = 0;
  goto check;
  while (flag == 0) {
    k = 1;
  check:;
  }
  return 0;
}

/* Updates of other threads' words that must not overtake each other, or other accesses: sums of 32 and of 64 bits of
   one word, and members of packed structures in two words; and choices by a sign. */
#include <limits.h>
#include <stdio.h>
#include <upc_relaxed.h>
#define N (200 * THREADS)
union both { unsigned long l; unsigned u[2]; };
shared union both a[N];
struct __attribute__((packed)) packed { int a; union { long b; unsigned char c[8]; } u; int d; };
shared struct packed p[N];
shared int s[N];
static volatile int v;

static int carries(void) {
  int i, wrong = 0;
  for (i = 0; i < N; i++) a[i].l = 0xffffffff;
  for (i = 0; i < N; i++) { a[i].l += 1; a[i].u[0] += 1; }
  for (i = 0; i < N; i++) wrong += a[i].l != 0x100000001;
  return wrong;
}

static int straddles(void) {
  int i, wrong = 0;
  for (i = 0; i < N; i++) p[i].u.b = 0;
  for (i = 0; i < N; i++) { p[i].u.b += 0x1010101010101010; p[i].u.c[6] ^= 1; }
  for (i = 0; i < N; i++) wrong += p[i].u.b != 0x1011101010101010;
  return wrong;
}

/* Each operation, of places that come again, and reads between, beside the same in private memory. */
static int mixed(void) {
  static int m[200 * 64];
  int i, wrong = 0, n = N < 200 * 64 ? N : 200 * 64;
  for (i = 0; i < n; i++) s[i] = m[i] = i;
  for (i = 0; i < n; i++) {
    s[i * 7 % n] ^= i;
    s[i * 7 % n] -= 3;
    s[i * 3 % n] |= 8;
    m[i * 7 % n] ^= i, m[i * 7 % n] -= 3, m[i * 3 % n] |= 8;
    wrong += s[i * 7 % n] != m[i * 7 % n];
    s[i] &= ~4;
    s[i * 3 % n]++;
    s[0]--;
    m[i] &= ~4, m[i * 3 % n]++, m[0]--;
  }
  for (i = 0; i < n; i++) wrong += s[i] != m[i];
  return wrong;
}

static long chosen(int x, long y) {
  v = x;
  return (x < 0 ? 7 : 0) + (x >= 0 ? 16 : -16) + (0 > x ? 100 : 300) + (y < 0 ? LONG_MIN / 4 : 5) + (y >= 0 ? 0xffffffffu : 1) + ((unsigned)x < 0 ? 1 : 2)
    + ((short)x < 0 ? 1000 : 2000) + (v++ < 0 ? 1 : 2) + ((x < 0 ? -1 : 1) > 0) + (x < 0u ? 3 : 4) + ((char)y < 0 ? -1 : 1u);
}

int main(void) {
  static const int xs[] = {0, 1, -1, INT_MAX, INT_MIN, 200, -70000};
  int i;
  if (MYTHREAD == 0) {
    long sum = 0;
    printf("%d carries, %d members and %d others wrong\n", carries(), straddles(), mixed());
    for (i = 0; i < 7; i++) sum = sum * 31 + chosen(xs[i], (long)xs[i] << i * 4);
    printf("chosen %ld\n", sum);
  }
  upc_barrier;
  return 0;
}

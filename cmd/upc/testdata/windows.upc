// Loops whose shared accesses are made by windows and by runs: rows, blocks, pointers, what lies
// before and behind them, and what changes in a loop. The other side of each comparison is an access
// by a function, of which the loop knows nothing.
#include <upc_relaxed.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>

#define N 24
#define BS 8
#define M 10

shared [BS] double a[N * THREADS][N], a2[N * THREADS][N];
shared [M] int line[3][M * THREADS];
shared [5] int five[7 * THREADS];
shared [] int whole[40];
shared [N] int rows[N * THREADS][N];
shared [] int *shared dir[THREADS];
shared int cyc[N * THREADS], grid[N][2 * THREADS];
shared [BS] short parts[3 * BS * THREADS];
shared [16] int big[48 * THREADS], sums[THREADS][48];
shared [8] int square[8][8 * THREADS];
static shared int *moving = &cyc[2];
shared int wrong[THREADS], visits[THREADS];
int bound = 17, plane;

static double at(int i, int j) { return *(&a[0][0] + (i * N + j)); }
static int in_line(int k, int i) { return *(&line[0][0] + (k * M * THREADS + i)); }
static int in_row(int i, int j) { return *(&rows[0][0] + (i * N + j)); }
static void check(int ok, int what) {
  if (!ok) {
    wrong[MYTHREAD] += 1;
    printf("thread %d: %d\n", MYTHREAD, what);
  }
}
static void change(void) { plane = 1 - plane; }
static int in_cyc(int i) { return cyc[i]; }
static int in_big(int i) { return big[i]; }
static void move(void) { moving = &cyc[0]; }

static void blocks(void) {
  int i, j, n;
  for (i = 0; i < N; i++)
    upc_forall (j = 0; j < N; j++; &a[i][j]) {
      a[i][j] = 100 * i + j;
      check(upc_threadof(&a[i][j]) == MYTHREAD, 1);
      visits[MYTHREAD]++;
    }
  upc_barrier;
  for (i = 1; i < N - 1; i++)
    upc_forall (j = 1; j <= N - 2; j++; &a[i][j])
      a2[i][j] = a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1];
  upc_barrier;
  for (i = 1; i < N - 1; i++)
    for (j = 1; j < N - 1; j++) {
      check(a2[i][j] == at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1), 2);
      check(a[i][j] == 100 * i + j, 3);
    }
  /* Pointers as affinity, from the middle of a block on, and with a constant. */
  shared [5] int *p = &five[3];
  for (n = 0; n < 3; n++) {
    upc_forall (i = -3; i < 7 * THREADS - 3; i++; &p[i])
      p[i] = 10 * n + i;
    upc_barrier;
    upc_forall (i = 0; i < 7 * THREADS - 4; i++; p + i + 1)
      check(upc_threadof(&p[i + 1]) == MYTHREAD && p[i + 1] == 10 * n + i + 1, 4);
    upc_forall (i = 1; i < 7 * THREADS; i++; &five[i - 1]) {
      check(upc_threadof(&five[i - 1]) == MYTHREAD && five[i] == 10 * n + i - 3 && five[i - 1] == 10 * n + i - 4, 5);
      visits[MYTHREAD]++;
    }
    upc_barrier;
  }
}

static void lines(void) {
  int i, k;
  for (k = 0; k < 3; k++) {
    upc_forall (i = 0; i < M * THREADS; i++; &line[k][i])
      line[k][i] = 1000 * k + i;
  }
  upc_barrier;
  for (k = 0; k < 3; k++)
    for (i = 1; i < M * THREADS - 1; i++) {
      check(line[k][i - 1] + line[k][i] + line[k][i + 1] == 3 * (1000 * k + i), 6);
      check(line[k][i] == in_line(k, i), 7);
    }
  /* The row changes in the loop: by an assignment, in a function, by a pointer. */
  plane = 0;
  for (i = 0; i < M * THREADS; i++) {
    check(line[plane][i] == 1000 * plane + i, 8);
    change();
  }
  k = 2;
  for (i = 0; i < M * THREADS; i++) {
    check(line[k][i] == 1000 * k + i, 9);
    k = i % 3;
  }
  int *q = &plane;
  for (i = 0; i < M * THREADS; i++) {
    check(line[plane][i] == 1000 * plane + i, 10);
    *q = i % 2;
  }
  /* Far behind and before the window. */
  for (i = 0; i < M; i++)
    check(line[1][i - M * THREADS] == i && line[1][i + M * THREADS] == 2000 + i, 11);
  upc_barrier;
  upc_forall (i = 0; i < M * THREADS; i++; &line[1][i]) {
    line[1][i] += 5;
    line[1][i]++;
    line[1][i] -= line[1][i]-- > 0;
    check(++line[2][i] == 2001 + i && line[2][i]-- == 2001 + i, 12);
  }
  upc_barrier;
  for (i = 0; i < M * THREADS; i++)
    check(in_line(1, i) == 1000 + i + 4 || in_line(1, i) == 1000 + i + 5, 13);
}

static void pointers(void) {
  int i, j, sum = 0;
  shared [] int *p = whole, *none = NULL;
  if (MYTHREAD == 0)
    for (i = 0; i < 40; i++)
      p[i] = i * i;
  upc_barrier;
  for (i = 0; i < 20; i++) {
    check(p[i + 3] == (i + 3) * (i + 3) && whole[2 * i] == 4 * i * i, 14);
    if (i > 40)
      sum += none[i];
  }
  p = &whole[10];
  for (i = -10; i < 30; i++)
    check(p[i] == (10 + i) * (10 + i), 15);
  for (i = 0; i < 30; i++, p++)
    check(p[-10] == i * i, 16);
  dir[MYTHREAD] = (shared [] int *)upc_alloc(N * sizeof(int));
  shared [] int *mine = dir[MYTHREAD];
  for (i = 0; i < N; i++)
    mine[i] = 100 * MYTHREAD + i;
  upc_barrier;
  for (j = 0; j < THREADS; j++) {
    shared [] int *theirs = dir[j];
    for (i = 0; i < N; i++)
      sum += theirs[i] - 100 * j - i;
    upc_forall (i = 0; i < N; i++; &theirs[i]) {
      check(upc_threadof(theirs) == MYTHREAD, 17);
      visits[MYTHREAD]++;
    }
  }
  check(sum == 0, 18);
}

static void nested(void) {
  int i, j;
  upc_forall (i = 0; i < N * THREADS; i++; &rows[i][0])
    upc_forall (j = 0; j < N; j++; &rows[i][j]) {
      rows[i][j] = i * N + j;
      visits[MYTHREAD]++;
    }
  upc_barrier;
  for (i = 0; i < N * THREADS; i++) {
    int sum = 0;
    for (j = 0; j < N; j++) {
      if (j == bound)
        continue;
      if (j > bound + 3)
        break;
      sum += rows[i][j];
    }
    check(sum == 20 * (i * N) + 20 * 21 / 2 - bound, 19);
    for (j = N - 1; j >= 0; j--)
      check(rows[i][j] == in_row(i, j), 20);
    for (j = 0; j < bound; j++) {
      check(rows[i][j] == i * N + j, 21);
      if (j == 5)
        bound--;
    }
    for (j = 0; rows[i][j] < i * N + 9; j++)
      ;
    check(j == 9, 22);
    bound = 17;
  }
}

/* Elements of cyclic arrays and of blocks, with any index, and around pointers. */
static void spreads(void) {
  unsigned i;
  int j, all = N * THREADS;
  for (i = MYTHREAD; i < all; i += THREADS) {
    cyc[i] = i;
    check(cyc[i] == i && (cyc[i] += 2) == i + 2 && cyc[i]++ == i + 2 && --cyc[i] == i + 2, 23);
    cyc[i] ^= cyc[i] & 1 ? 7 : 0;
    check(in_cyc(i) == ((i & 1 ? 7 : 0) ^ (i + 2)), 24);
    cyc[i] *= in_cyc(i) ? 1 : 5;
    cyc[i] = i < all && cyc[i] >= 0 ? i : -1;
    check(!(i >= all && cyc[i + (1 << 30)]) && (i < all || cyc[i - (1 << 30)]), 25);
  }
  for (i = MYTHREAD; i < 3 * BS * THREADS; i += THREADS)
    parts[i] = 60000 + i, parts[i] -= 60000, parts[i] <<= 1;
  for (j = 0; j < N; j++)
    for (i = 0; i < 2; i++)
      grid[j][2 * MYTHREAD + i] = 100 * j + 2 * MYTHREAD + i;
  upc_barrier;
  shared int *p = &cyc[all / 2 + 1 % THREADS];
  shared [BS] short *q = &parts[BS + 3];
  for (j = -all / 2; j < all / 2 - 1; j++)
    check(p[j] == all / 2 + 1 % THREADS + j && *(p + j) == p[j] && cyc[(j + all / 2) * 5 % all] == (j + all / 2) * 5 % all, 26);
  for (j = -BS - 3; j < BS; j += 2)
    check(q[j] == 2 * (BS + 3 + j) && parts[BS + 3 + j] == q[j], 27);
  for (j = 0; j < 2 * N * THREADS; j++)
    check(grid[j / (2 * THREADS)][j % (2 * THREADS)] == j / (2 * THREADS) * 100 + j % (2 * THREADS), 28);
  /* The pointer changes: by an assignment, and in a function. */
  for (j = 0; j < 8; j++, p++)
    check(p[-1] == all / 2 + 1 % THREADS + j - 1, 29);
  for (j = 0; j < 8; j++) {
    check(moving[j] == (j ? 0 : 2) + j, 30);
    move();
  }
  upc_barrier;
}

/* Elements one behind the other across blocks and threads, and what looks like them. */
static void runs(void) {
  int i, k, n = 48 * THREADS, count;
  long sum;
  shared [16] int *p = &big[5];
  for (i = 0; i < n; i++)
    if (MYTHREAD == 0)
      big[i] = i;
  for (i = 0; i < 48; i++)
    sums[MYTHREAD][i] = 1;
  upc_barrier;
  for (k = 0; k < 6; k++) {
    for (i = k, sum = count = 0; i < n - 8; i++, count++) {
      if (i % 7 == 3)
        continue;
      sum += big[i + k] - p[i - k] - (2 * k - 5);
      sum += *(i + p) - big[5 + i];
    }
    check(sum == 0 && i == n - 8 && count == n - 8 - k, 31);
  }
  for (i = 0; i < 47; i++)
    sums[MYTHREAD][i + 1] += sums[MYTHREAD][i]++ + big[i + 1] - i;
  for (i = 0; i < 48; i++)
    check(sums[MYTHREAD][i] == 1 + 2 * i + (i < 47), 32);
  for (i = k = 0, sum = 0; i < n - 1; i++) { /* k changes */
    sum += big[i + k] - in_big(i + k);
    k = i % 2;
  }
  for (i = 0; i < 20; i++) { /* the index wraps around, or leaps */
    sum += big[(unsigned)(i - 1) + 1u] - i;
    sum += big[2 * i] - big[i + i] + big[20 - i] - (20 - i);
  }
  for (i = 0; i < n - 1 && sum == 0; i++)
    sum += big[i] - in_big(i);
  check(sum == 0, 33);
  upc_barrier;
}

static int find(int v) {
  int i;
  for (i = 0; i < (1L << 40); i++)
    if (big[i] == v)
      return i;
  return -1;
}

/* Bounds that the counter does not reach, or reaches last; and a row and a column in one loop. */
static void bounds(void) {
  long k, sum = 0;
  int j;
  check(find(30) == 30 && find(48 * THREADS - 2) == 48 * THREADS - 2, 34);
  for (k = LONG_MAX - 3; k < LONG_MAX; k++)
    sum += big[k - (LONG_MAX - 3)];
  check(sum == 3, 35);
  for (j = 0; j < 8; j++)
    sum += square[2][j] - square[j][2];
  check(sum == 3, 36);
  upc_barrier;
}

int main(void) {
  int i, bad = 0, seen = 0;
  blocks();
  lines();
  pointers();
  nested();
  spreads();
  runs();
  bounds();
  upc_barrier;
  for (i = 0; i < THREADS; i++) {
    bad += wrong[i];
    seen += visits[i];
  }
  if (MYTHREAD == 0)
    printf("windows: %d wrong, %d visits\n", bad, seen);
  return 0;
}

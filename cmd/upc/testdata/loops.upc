/* A loop for each condition of an optimisation, and for what each does not take. loops.opt and loops.go have what is made of
   them, so that one that ceases to apply is seen. */
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

#define N 16
#define ALL (N * THREADS)

shared long cyclic[ALL], other[ALL];
shared [4] long blocks[ALL];
shared [N] long own[ALL];
shared [] long here[N];
shared [N] long rows[ALL][N];
shared [N] long idx[ALL];
shared long rows1[ALL][N];
strict shared long flag;

static long priv[N], out;
static int list[N];
static shared [] long *whole = here;
static shared [4] long *runs = blocks;

/* Bounds of upc_forall. */
static void forall_element(void) { upc_forall (int i = 0; i < ALL; i++; &cyclic[i]) cyclic[i] = i; }
static void forall_integer(void) { upc_forall (int i = 0; i < ALL; i++; i) other[i] = cyclic[i]; }
static void forall_blocks(void) { upc_forall (int i = 0; i < ALL; i++; &blocks[i]) blocks[i] = 2 * i; }
static void forall_rows(void) { upc_forall (int i = 0; i < ALL; i++; &rows[i][0]) for (int j = 0; j < N; j++) rows[i][j] = i + j; }
static void forall_own(void) { upc_forall (int i = 0; i < ALL; i++; &own[i]) own[i] = 3 * i; }
static void forall_pointer(void) { upc_forall (int i = 0; i < ALL; i++; &runs[i]) runs[i]++; }
static void forall_here(void) { upc_forall (int i = 0; i <= N - 1; i++; &here[i]) here[i] = i * i; }
static void forall_outside(void) { int i; upc_forall (i = 0; i < ALL; i++; &blocks[i]) blocks[i] += 1; out += i; }
static void forall_tested(void) { upc_forall (int i = 0; i < ALL; i++; 2 * i) out++; }
static void forall_step(void) { upc_forall (int i = 0; i < ALL; i += 2; &cyclic[i]) cyclic[i]++; }
static void forall_changes(void) { upc_forall (int i = 0; i < ALL; i++; &cyclic[i]) if (i < 0) i = 9; }

/* Windows. */
static void window_pointer(void) { for (int i = 0; i < N; i++) out += whole[list[i]]; }
static void window_array(void) { for (int i = 0; i < N; i++) here[list[i]] += 1; }
static void window_row(int k) { for (int i = 0; i < N; i++) out += rows[k][list[i]]; }
static void window_own(void) { for (int i = 0; i < N; i++) own[MYTHREAD * N + list[i]]++; }
static void window_while(void) { int i = 0; while (i < N) { out += here[i]; i += 2; } }
static void spread_cyclic(void) { for (int i = 0; i < N; i += 2) out += cyclic[i]; }
static void spread_update(int k) { do cyclic[k & 7] ^= k; while (--k); }
static void spread_pointer(int k) { while (k-- > 0) out += runs[list[k]]--; }
static void spread_row(void) { for (int i = 0; i < 2 * N; i++) out += rows[i & 1][i / 2]; }
static void no_window_moves(void) { for (shared [] long *p = here; p < here + N; p++) out += *p; }
static void no_window_strict(void) { for (int i = 0; i < 2; i++) out += flag; }
static void no_window_static(void) { for (int i = 0; i < 2; i++) { out += runs[i]; *(&list[0] + i) += 0; } }

/* Slices. */
static void slice_copy(void) { for (int i = 0; i < N; i++) priv[i] = here[i]; }
static void slice_around(void) { for (int i = 1; i < N - 1; i++) out += here[i - 1] - 2 * here[i] + here[i + 1]; }
static void slice_pure(void) { for (int i = 0; i < N; i++) here[i] = labs(here[i]) + upc_threadof(&here[i]); }
static void no_slice_break(void) { for (int i = 0; i < N; i++) { if (here[i] < 0) break; out++; } }
static void no_slice_call(void) { for (int i = 0; i < N + out % 2; i++) { out += here[i]; srand(i); } }

static void run_pointer(shared [4] long *p, int k) { for (int i = 1; i < N; i++) priv[i] += p[k * 4 + i] - *(p + i - 1); }
static void no_run(int k) { for (int i = 0; i < N; i++) { out += runs[i + k] + runs[2 * i / 2] + runs[k - i + 9] * 0; k = 0; } }

/* Strips of places a constant apart, by the spread of an array if blocks are not small; constants in variables. */
static void strip_merged(int k, int j) { for (int i = 1; i < N; i++) rows[k][i] = rows[k - 1][i + j - 1] + rows[k - 1][j + i + 2] * rows[k][i - 1]; }
static void strip_rows(void) { for (int k = 1; k < ALL; k++) for (int i = 0; i < N; i++) rows[k][i] += rows[k - 1][i]; }
static void strip_small(void) { for (int k = 0; k < 8; k++) for (int i = 0; i < ALL; i++) out += (long)(0.1 * runs[i + k] + runs[i + 1 + k] / 4. - 6); }
static void strip_wraps(unsigned w) { for (unsigned i = 0; i < N; i++) out += cyclic[i + w]; }
static void strip_cyclic(int k) { upc_forall (int i = 1; i < N; i++; &rows1[k][i]) rows1[k][i] = rows1[k - 1][i - 1]; }
static void no_strip_row(void) { for (int k = 0; k < ALL; k++) for (int i = 0; i < N; i++) out += rows[k][i] + rows[k][list[i]]; }

/* Gets that are done ahead, and puts under way together. */
static void ahead_list(void) { for (int i = 0; i < N; i++) out += cyclic[list[i]]; }
static void ahead_local(void) { for (int i = 0; i < N; i++) { int k = list[i] + 1; out += cyclic[k]; } }
static void ahead_twice(void) { for (int i = 0; i < N; i++) out += cyclic[idx[i] % ALL]; }
static void ahead_pure(void) { for (int i = 0; i < N; i++) out += cyclic[list[i]] + upc_threadof(&cyclic[list[i]]) + upc_addrfield(&cyclic[i]) % 8; }
static void ahead_puts(void) { for (int i = 0; i < N; i++) other[list[i]] = priv[i]; }
static void ahead_updates(void) { for (int i = 0; i < N; i++) other[list[i]] -= priv[i], cyclic[list[i]]++; }
static void no_ahead_call(void) { for (int i = 0; i < N; i++) out += cyclic[list[i]] + (rand() & 0); }
static void no_ahead_chain(void) { long k = 0; for (int i = 0; i < N; i++) k = idx[k] % ALL; out += k; }
static void no_ahead_alias(void) { for (int i = 1; i < N; i++) cyclic[i] = cyclic[i - 1]; }

/* Loops that wait for another thread answer messages. */
static void polls(void) { while (cyclic[0] != 0) ; }

/* Rows. */
static struct pair { long a, b; } pairs[2][N];
struct grid { int n; double **rows, *at; };
union word { long i, *p; };
static void row_grid(double ***u, int j, int k) { for (int i = 1; i < N - 1; i++) u[j][k][i] = u[j - 1][k][i - 1] + u[j][k + 1][2 * i + 1]; }
static void row_struct(struct grid *g) { for (int i = 0; i < g->n; i++) g->rows[1][i] = *g->at; }
static void row_copy(struct pair **x, int k) { int i; for (i = 0; i < k; i++) x[0][i] = x[k][i]; out += i; }
static void row_left(long **u) { int i; for (i = 0; i < N; i++) { if ((u[1][i] = i) > 5) break; u[0][i] = 1; } out += i; }
static void row_down(long **u, int i) { while (i > 0) { u[1][i] += u[0][i - 1]; i -= 2; } }
static void row_array(int k, int n) { for (int i = 1; i < n; i++) priv[i] += priv[i - 1] + pairs[k][i].a; }
static void row_plain(double *p, double *q, int n) { for (int i = 0; i < n; i++) p[i + 1] = q[i]; }
static void row_unsigned(long **u, unsigned n) { for (unsigned i = 1; i < n; i++) u[1][i] += u[0][i - 1] + here[i + 1]; }
static void row_size(long **u, size_t n) { for (size_t i = 0; i <= n; i++) u[1][i + 2] += u[0][2 * i]; }
static void row_test(long **u, size_t n) { for (int i = 0; i < n; i++) u[1][i] += here[i]; }
static void row_do(long **u, int i) { do u[1][i] += 1; while (++i < N); }
static void row_after(long **u, size_t i) { while (i-- > 0) u[1][i] += u[0][i]; }
static void no_row_after(long **u, int k) { for (int i = N; i-- > 0; k++) u[1][i] += k & 1; }
static void no_natural(long **u, size_t i, unsigned n, long m) {
  for (; i < n; i++) u[1][i] += 1;
  for (size_t j = m; j < n; j++) u[1][j] += 1;
  for (int j = -1; j < n; j++) u[1][j + 1] += 1;
  for (unsigned j = 0; j <= n; j++) u[1][j] += 1;
  for (unsigned j = 0; j < m; j++) u[1][j] += 1;
  for (unsigned j = 0; j < n; j++) u[1][j + 2] += 1;
  for (unsigned j = i; j < n; j++) u[1][j - 1] += 1;
}
static void no_row_moves(long **u) { for (int i = 0; i < N; i++) u[i % 2][i] += 1; }
static void no_row_pointer(long **u) { for (int i = 0; i < N; i++) { u[1][i] += 1; u[1] = u[0]; } }
static void no_row_char(long **u, char *c) { for (unsigned i = 0; i < N; i++) { u[1][i] += 1; c[i] = 0; } }
static void no_row_union(union word *w, long **u) { for (unsigned i = 0; i < N; i++) { u[1][i] += 1; w->i = i; } }
static void no_row_call(long **u) { for (unsigned i = 0; i < N; i++) { u[1][i] += 1; srand(i); } }
static void no_row_if(long **u, int k) { for (unsigned i = 0; i < N; i++) if (k) u[1][i] += 1; }
static void no_row_and(long **u, int k) { for (unsigned i = 0; i < N; i++) out += k && u[1][i]; }
static void no_row_left(long **u, unsigned k) { for (unsigned i = 0; i < N; i++) { if (i == k) break; u[1][i] += 1; } }
static void no_row_volatile(long *volatile *u, volatile long **v) { for (unsigned i = 0; i < N; i++) { u[1][i] += 1; v[1][i] += 1; } }
static void no_row_shared(shared long **u) { for (unsigned i = 0; i < N; i++) u[1][i] += 1; }
static void no_row_strict(long **u) { for (unsigned i = 0; i < N; i++) { u[1][i] += 1; out += flag; } }
static void no_row_fence(long **u) { for (unsigned i = 0; i < N; i++) { u[1][i] += 1; upc_fence; } }
static void no_row_goto(long **u, int k) { int i = 0; if (k) goto in; for (; i < N; i++) { u[1][i] += 1; in:; } }
static void no_array_left(void) { for (int i = 0; i < N + 1; i++) { if (i == N) break; priv[i] += 1; } }
static void no_array_if(int k) { for (int i = 0; i < N + 1; i++) if (i < k) priv[i] += 1; }

int main(void) {
  for (int i = 0; i < N; i++)
    list[i] = (i * 5 + 3) % N;
  forall_element(), forall_integer(), forall_blocks(), forall_rows(), forall_own(), forall_here();
  upc_barrier;
  forall_pointer();
  upc_barrier;
  forall_outside(), forall_tested(), forall_step(), forall_changes();
  upc_barrier;
  if (MYTHREAD == 0) {
    long keep = cyclic[0];
    window_pointer(), window_array(), window_row(1 % ALL), window_own(), window_while();
    spread_cyclic(), spread_update(5), spread_pointer(4), spread_row(), no_window_moves(), no_window_strict(), no_window_static();
    slice_copy(), slice_around(), slice_pure(), no_slice_break(), run_pointer(runs, 0), no_run(0), no_slice_call();
    if (out == -1) // never: grids.upc has such loops
      strip_merged(1, 0), strip_rows(), strip_small(), strip_wraps(1), strip_cyclic(1), no_strip_row();
    for (int i = 0; i < ALL; i++)
      idx[i] = (i * 7 + 2) % ALL;
    ahead_list(), ahead_local(), ahead_twice();
    out += keep;
    long before = out;
    ahead_pure();
    out = before, ahead_puts(), ahead_updates(), no_ahead_call(), no_ahead_chain(), no_ahead_alias();
    cyclic[0] = 0;
    polls();
    double *one[4], **rows3[2] = {one, one + 1}, all[4 * N] = {1};
    long *two[2] = {priv, priv}, other2[2 * N] = {0};
    for (int i = 0; i < 4; i++)
      one[i] = all + 2 * i;
    struct grid g = {4, one, all};
    struct pair *three[2] = {pairs[0], pairs[1]};
    union word w;
    shared long *four[2] = {cyclic, cyclic};
    row_grid(rows3, 1, 1), row_struct(&g), row_copy(three, 1), row_left(two), two[0] = other2, row_down(two, 3), row_array(1, N), row_plain(all, all + 1, 3);
    no_row_moves(two), no_row_pointer(two), no_row_char(two, (char *)other2), no_row_union(&w, two), no_row_call(two), no_row_if(two, 0), no_row_and(two, 0);
    no_row_left(two, 0), no_row_volatile(two, (volatile long **)two), no_row_shared(four), no_row_strict(two), no_row_fence(two), no_row_goto(two, 0);
    row_unsigned(two, 3), row_size(two, 1), row_test(two, 2), row_do(two, 1), row_after(two, 3), no_row_after(two, 0), no_natural(two, 2, 3, 2);
    no_array_left(), no_array_if(N), cyclic[0] = 0;
    printf("%ld\n", out + other[3]);
  }
  return 0;
}

// Counts words of a text that all threads read together, each from the first word that begins in its part, sorts them
// by a table of letters, and writes the table together, too.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include <upc_io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART 700
#define LETTERS 26

shared [PART] char text[PART * THREADS];
shared [LETTERS] long found[LETTERS * THREADS];
shared long sums[LETTERS * THREADS], again[LETTERS * THREADS]; /* of which the first LETTERS count */

static void make(const char *name) {
  FILE *f = fopen(name, "w");
  unsigned state = 1;
  int i, n = 0;
  while (n < PART * THREADS) {
    int length = (state >> 16) % 9;
    for (i = 0; i < length && n < PART * THREADS - 1; i++, n++) {
      state = state * 1103515245u + 12345u;
      fputc('a' + (state >> 16) % LETTERS, f);
    }
    state = state * 1103515245u + 12345u;
    fputc(++n % 60 ? ' ' : '\n', f);
  }
  fclose(f);
}

int main(void) {
  char own[PART], before;
  long counts[LETTERS] = { 0 }, total = 0, wrong = 0;
  int i, t;
  upc_file_t *f;
  if (MYTHREAD == 0)
    make("words");
  upc_barrier;
  f = upc_all_fopen("words", UPC_RDONLY | UPC_COMMON_FP, 0, NULL);
  if (!f || upc_all_fread_shared(f, text, PART, 1, PART * THREADS, 0) != upc_all_fget_size(f))
    upc_global_exit(1);
  upc_all_fclose(f);
  upc_memget(own, &text[PART * MYTHREAD], PART);
  before = MYTHREAD ? text[PART * MYTHREAD - 1] : ' ';
  for (i = 0; i < PART; before = own[i++])
    if (own[i] >= 'a' && (before == ' ' || before == '\n'))
      counts[own[i] - 'a']++;
  upc_memput(&found[LETTERS * MYTHREAD], counts, sizeof counts);
  upc_barrier;
  upc_forall (i = 0; i < LETTERS; i++; &sums[i]) {
    sums[i] = 0;
    for (t = 0; t < THREADS; t++)
      sums[i] += found[LETTERS * t + i];
  }
  /* Each thread appends its counts by a list, before them is the table of all. */
  f = upc_all_fopen("counts", UPC_RDWR | UPC_COMMON_FP | UPC_CREATE | UPC_TRUNC, 0, NULL);
  if (!f || upc_all_fwrite_shared(f, sums, 1, sizeof(long), LETTERS, 0) != LETTERS * sizeof(long))
    upc_global_exit(2);
  struct upc_local_memvec memory = { counts, sizeof counts };
  struct upc_filevec place = { LETTERS * sizeof(long) * (1 + MYTHREAD), sizeof counts };
  upc_all_fwrite_list_local_async(f, 1, &memory, 1, &place, 0);
  if (upc_all_fwait_async(f) != sizeof counts)
    upc_global_exit(3);
  upc_all_fsync(f);
  upc_all_fseek(f, 0, UPC_SEEK_SET);
  upc_all_fread_shared(f, again, 1, sizeof(long), LETTERS, 0);
  upc_all_fclose(f);
  /* The last thread reads both as C has it. */
  if (MYTHREAD == THREADS - 1) {
    FILE *words = fopen("words", "r"), *table = fopen("counts", "r");
    long have[LETTERS], all[LETTERS] = { 0 };
    char word[16];
    fread(have, sizeof(long), LETTERS, table);
    for (t = 0; t < THREADS; t++) {
      fread(counts, sizeof(long), LETTERS, table);
      for (i = 0; i < LETTERS; i++)
        all[i] += counts[i];
    }
    for (i = 0; i < LETTERS; i++) {
      wrong += have[i] != all[i] || have[i] != again[i] || sums[i] != have[i];
      total += have[i];
    }
    while (fscanf(words, "%15s", word) == 1)
      have[word[0] - 'a']--, total--;
    for (i = 0; i < LETTERS; i++)
      wrong += have[i] != 0;
    printf("io: %ld wrong, %ld words more or less\n", wrong, total);
    fclose(words);
    fclose(table);
  }
  return 0;
}

// Shared string handling.
#include <upc_relaxed.h>
#include <string.h>
#include "clause.h"

shared [16] char a[16 * THREADS], b[16 * THREADS];
shared [4] int ints[4 * THREADS];

int main(void) {
  int i, next = (MYTHREAD + 1) % THREADS, buf[4] = { 3, 1, 4, 1 }, got[4] = { 0 };
  char text[16] = "abcdefghijklmno", back[17];
  /* 7.2.5.3 */
  upc_memput(&a[16 * next], text, 16);
  upc_memput(&ints[4 * next], buf, sizeof buf);
  upc_barrier;
  /* 7.2.5.2 */
  memset(back, 'z', sizeof back);
  upc_memget(back + 1, &a[16 * MYTHREAD] + 2, 5);
  CHECK(!memcmp(back, "zcdefgzzzzzzzzzzz", 17));
  upc_memget(got, &ints[4 * MYTHREAD], sizeof got);
  CHECK(!memcmp(got, buf, sizeof buf));
  upc_memget(got, &ints[4 * next + 2], 0);
  CHECK(got[0] == 3);
  upc_barrier;
  /* 7.2.5.1: from one thread to another, both not this one. */
  upc_memcpy(&b[16 * ((MYTHREAD + 2) % THREADS)], &a[16 * next], 16);
  upc_barrier;
  for (i = 0; i < 16; i++)
    CHECK(b[16 * MYTHREAD + i] == text[i]);
  upc_memcpy(&b[16 * MYTHREAD], &b[16 * MYTHREAD + 8], 4); /* within one thread */
  CHECK(b[16 * MYTHREAD + 3] == 'l');
  upc_barrier;
  /* 7.2.5.4: c as an unsigned char. */
  upc_memset(&b[16 * next + 1], 'x' + 256, 3);
  upc_barrier;
  CHECK(b[16 * MYTHREAD] == 'i' && b[16 * MYTHREAD + 1] == 'x' && b[16 * MYTHREAD + 3] == 'x' && b[16 * MYTHREAD + 4] == 'e');
  upc_memset(&ints[4 * MYTHREAD], -1, 3 * sizeof(int));
  CHECK(ints[4 * MYTHREAD + 2] == -1 && ints[4 * MYTHREAD + 3] == 1);
  return clause_done();
}

#include "files.h"

int limit = 40;
static int count;

int sum(const struct pair *p) { return p->a + p->b; }
struct box { double unused; int v; };
static struct box one;
struct box *pack(int v) {
  one.v = v;
  return &one;
}
int unpack(struct box *b) { return b->v; }
int bump(void) { return count++; }

long spread(void) {
  long s = 0;
  for (int i = 0; i < THREADS; i++)
    s += total[i];
  return s;
}

#include "pair.h"
char before, elsewhere_too;
int elsewhere __attribute__((aligned(64))) = 11;
double summed(struct pair p, int k) { return p.a + p.b + k; }
double mixed(g, p, f) struct big g; struct pair p; float f; { return g.v[4] * p.b + f; }

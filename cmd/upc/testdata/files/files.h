#pragma once
#include <upc_strict.h>
struct pair { int a, b; };
extern int limit;
extern shared int total[THREADS];
int sum(const struct pair *p);
struct box; /* what is in it only the other file knows */
struct box *pack(int v);
int unpack(struct box *b);
int bump(void);
long spread(void);

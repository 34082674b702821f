#pragma once
#include <upc_strict.h>
struct pair { int a, b; };
extern int limit;
extern shared int total[THREADS];
int sum(const struct pair *p);
int bump(void);
long spread(void);

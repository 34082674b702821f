#include <upc.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
struct __attribute__((packed)) A { char c; int i; double d; short s; };
typedef struct { char c; long l; } __attribute__((__packed__)) B;
#pragma pack(push, 1)
struct P { char a; short b; int c; };
#pragma pack(pop)
struct Q { char a; short b; int c; };
struct L { int v; } __attribute__((aligned(64)));
struct M { char c; struct L l; int x __attribute__((aligned(16))); char e; };
typedef double adouble __attribute__((aligned(32)));
struct N { char c; adouble d; };
struct F { int n; double v[]; };
struct Z { char n; short v[0]; } __attribute__((packed));
struct U { int tag; union { int i; double d; struct { short a, b; }; }; int end; };
unsigned char b[5] = "abcd";
signed char sb[] = "xyz";
shared unsigned char sh[4*THREADS];
shared [] unsigned char sh2[4] = "\xff\xfe";
struct A garr[3] = {{'a', 1, 2.5, 3}, {.i = 7}};
shared struct A sa[THREADS];
_Static_assert(sizeof(struct A) == 15, "packed");
int first(int (*p)[]) { return (*p)[0]; }
int (*gp)[];
extern int ext[];
int ext[3] = {4,5,6};
int main(void) {
  struct F *f = (struct F *)"";
  struct U u = {1, {.d = 2.0}, 9};
  struct U w = {.tag = 3, .b = 4, .end = 5};
  int arr[3] = {7, 8, 9};
  gp = &arr;
  if (MYTHREAD == 0) {
  printf("%zu %zu %zu %zu\n", sizeof(struct A), sizeof(B), sizeof(struct P), sizeof(struct Q));
  printf("%zu %zu %zu\n", sizeof(struct L), sizeof(struct M), sizeof(struct N));
  printf("%zu %zu %zu %zu\n", offsetof(struct M, l), offsetof(struct M, x), offsetof(struct M, e), offsetof(struct N, d));
  printf("%zu %zu\n", sizeof(struct F), offsetof(struct F, v));
  printf("%zu %zu packed\n", sizeof(struct Z), offsetof(struct Z, v));
  printf("%zu %d %g %d %d\n", sizeof u, u.tag, u.d, u.end, w.b);
  printf("%s %d %s %d\n", b, sh2[0], sb, (int)_Alignof(double));
  printf("%d %d %d %d\n", garr[0].i, garr[1].i, garr[0].s, ((char *)&garr[1])[1]);
  printf("%d %d %d\n", first(&arr), (*gp)[2], ext[1]);
  sa[0].d = 1.5; sa[0].i = 3;
  struct A t = sa[0];
  t.c = 'z'; sa[0] = t;
  printf("%g %d %c\n", sa[0].d, sa[0].i, sa[0].c);
  f = 0;
  }
#line 100 "other.c"
  printf("%s:%d\n", __FILE__, __LINE__);
  (void)f;

  return 0;
}

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
typedef int __attribute__((aligned(2))) lessint;
typedef struct { char c; short s; } rec __attribute__((aligned(64)));
typedef double v4[4] __attribute__((aligned(32)));
struct V { char c; lessint i; rec r; v4 v; };
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
#pragma pack(push, 1)
struct S0 { unsigned f0 : 9; const unsigned f1 : 12; unsigned f2 : 28; signed f3 : 24; signed f4 : 3; int f5; unsigned f6 : 1; };
struct S1 { char c; signed f : 9; unsigned : 0; unsigned g : 7; };
union S2 { unsigned a : 3; char d; };
struct S3 { char c : 3; long a : 61; unsigned long b : 63; signed char z : 5; };
#pragma pack(pop)
struct S4 { unsigned a : 5; int b : 30; short s; } __attribute__((packed));
#pragma pack(4)
struct S5 { char c; long a : 40; long b : 30; unsigned x : 20; };
struct S6 { char c; long a : 40; long b : 30; unsigned x : 20; } __attribute__((packed));
#pragma pack()
struct S7 { char c; int a : 30 __attribute__((packed)); int b : 20; };
struct S8 { char c; int a : 3 __attribute__((aligned(8))); int b : 20; };
struct S9 { char c; int a : 3 __attribute__((aligned(2))); int : 0; char d; int e : 31; };
static void bytes(const void *p, size_t size, size_t align) {
  printf("%zu %zu:", size, align);
  for (size_t i = 0; i < size; i++)
    printf(" %02x", ((const unsigned char *)p)[i]);
  printf("\n");
}
#define BYTES(v) bytes(&v, sizeof v, _Alignof(v))
/* As gcc has them. */
static void packedBits(void) {
  static struct S0 k = {300, 2, 0x8abcdef, -5, -1, 6, 1};
  struct S0 *p = &k;
  static struct S1 a = {1, -200, 99};
  static union S2 u = {13};
  static struct S3 l = {-2, -123456789012345, 0x7abcdef123456789, -7};
  static struct S4 b = {17, -3, 77};
  static struct S5 q = {1, -2, -3, 0xfffff};
  static struct S6 r = {1, -2, -3, 0xfffff};
  static struct S7 x = {1, -2, -3};
  static struct S8 y = {1, -2, -3};
  static struct S9 z = {1, -2, 3, -4};
  p->f2++;
  p->f3 -= 2;
  int v = a.f = 300, w = a.f++ + --a.g;
  printf("%d %d %d %d, %d %d %d, %d %ld %ld\n", k.f0, k.f2, k.f3, k.f4, v, w, u.a, z.e, (long)l.a, (long)l.b);
  BYTES(k), BYTES(a), BYTES(u), BYTES(l), BYTES(b), BYTES(q), BYTES(r), BYTES(x), BYTES(y), BYTES(z);
}
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
  {
    struct V x = {1, -2, {3, 4}, {5, 6}};
    rec c = x.r, *p = &c;
    printf("%zu %zu %zu %zu, %zu %zu, %d %d %g\n", sizeof x, offsetof(struct V, i), offsetof(struct V, r), offsetof(struct V, v), sizeof(rec), _Alignof(lessint), x.i, p->s, x.v[1]);
  }
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
  packedBits();
  }
#line 100 "other.c"
  printf("%s:%d\n", __FILE__, __LINE__);
  (void)f;

  return 0;
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <math.h>
/* Pointers to functions, of the library too and of other types, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#else
#define MYTHREAD 0
#endif
typedef int (*compare)(const void *, const void *);
typedef void (*any)(void);
struct pair { int key; const char *name; };
static int by_key(const struct pair *a, const struct pair *b) { return (a->key > b->key) - (a->key < b->key); }
static int by_name(const char **a, const char **b) { return strcmp(*a, *b); }
static int plus(int a, int b) { return a + b; }
static int minus(int a, int b) { return a - b; }
static double half(double x) { return x / 2; }
static struct { const char *name; double (*f)(double); } table[] = {{"sqrt", sqrt}, {"floor", &floor}, {"half", half}, {"none", 0}};
static any anything[] = {(any)plus, (any)strlen, (any)half};
static int (*classes[])(int) = {isalpha, isdigit, toupper};
static compare string_order = (compare)strcmp;
static double integral(double (*f)(double), double to) { double s = 0, x; for (x = 0.5; x < to; x += 1) s += f(x); return s; }
static void each(char *s, int (*f)(int)) { for (; *s; s++) *s = f((unsigned char)*s); }
static int (*choose(int c))(int, int) { return c ? plus : minus; }
int main(void) {
  struct pair pairs[] = {{5, "five"}, {-1, "minus"}, {3, "three"}, {9, "nine"}}, want = {3, 0}, *found;
  const char *words[] = {"pear", "fig", "apple", "date"};
  char codes[4][4] = {"ccc", "a", "bb", "b"}, text[] = "mixed Case 42";
  void *p, *(*get)(size_t) = malloc;
  void (*put)(void *) = free;
  size_t (*len)(const char *) = strlen, i;
  int (*op)(int, int);
  if (MYTHREAD != 0)
    return 0;
  qsort(pairs, 4, sizeof *pairs, (compare)by_key);
  for (i = 0; i < 4; i++) printf("%d %s\n", pairs[i].key, pairs[i].name);
  found = bsearch(&want, pairs, 4, sizeof *pairs, (int (*)(const void *, const void *))by_key);
  qsort(words, 4, sizeof *words, (int (*)(const void *, const void *))by_name);
  qsort(codes, 4, sizeof *codes, (compare)strcmp);
  for (i = 0; i < 4; i++) printf("%s %s\n", words[i], codes[i]);
  printf("%s %d\n", found->name, (int)(found - pairs));
  for (i = 0; i < sizeof table / sizeof *table; i++) printf("%s %g\n", table[i].name, table[i].f ? table[i].f(10.5) : -1);
  printf("%.6f %.6f\n", integral(sin, 3), integral(half, 4));
  each(text, toupper); printf("%s", text); each(text, classes[text[0] == 'M' ? 2 : 0]); each(text, &tolower); printf(" %s %d %d\n", text, !!classes[0]('x'), !!(*classes[1])('x'));
  p = get(16); strcpy(p, "sixteen"); printf("%s %d\n", (char *)p, (int)len(p)); put(p);
  printf("%d %d %g\n", ((int (*)(int, int))anything[0])(3, 4), (int)((size_t (*)(const char *))anything[1])("four"), ((double (*)(double))anything[2])(5));
  op = choose(1); printf("%d %d %d %d", op(1, 2), op == plus, op == minus, choose(0) != op); p = (void *)op; op = (int (*)(int, int))p; printf(" %d %d %d\n", op(5, 6), p == (void *)plus, p == (void *)minus);
  printf("%d %d %d\n", len == strlen, (any)len == anything[1], (any)len == anything[0]);
  i = (size_t)plus; op = (int (*)(int, int))i; printf("%d %d %d\n", op(7, 8), (size_t)op == i, (op ? 1 : 0) + !op);
  printf("%d %d\n", string_order("a", "b") < 0, string_order == (compare)strcmp);
  return 0;
}

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>
/* Wide characters in the C locale, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
shared wchar_t letter;
#else
#define MYTHREAD 0
static wchar_t letter;
#endif
#define sign(x) (((x) > 0) - ((x) < 0))
#define TITLE L"wide" L"\x263a" " string"
static const wchar_t title[] = TITLE;
static wchar_t fixed[8] = L"abc", exact[3] = L"xyz", braces[] = {L"in braces"};
static wchar_t mixed[] = "ad" L"ja" "cent\xe9"; /* wide if one of them is */
static const wchar_t *days[] = {L"Monday", L"Tuesday", L"\u00e9t\351 \101\t\\"};
struct entry { wchar_t name[6]; int n; };
static struct entry table[] = {{L"one", 1}, {L"seven", 7}, {{L'a', L'b'}, 2}};
static int words(const wchar_t *s) {
  int n = 0, in = 0;
  for (; *s; s++) {
    if (iswalpha(*s) && !in) n++;
    in = iswalnum(*s);
  }
  return n;
}
static int compare(const void *a, const void *b) { return wcscmp(*(wchar_t *const *)a, *(wchar_t *const *)b); }
#if L'A' != 65 || L'\xe9' != 233
#error characters
#endif
int main(int argc, char **argv) {
  wchar_t a[40], local[10] = L"loc", *p, *rest;
  char text[40];
  size_t i;
  if (MYTHREAD) return 0;
  printf("%zu %zu %zu %zu\n", sizeof title / sizeof *title, wcslen(title), sizeof L"xy", sizeof(wchar_t));
  for (i = 0; i < wcslen(title); i++) printf("%x ", (unsigned)title[i]);
  printf("\n%d %d %d %d %zu %zu\n", fixed[2], fixed[7], exact[2], local[9], wcslen(local), sizeof braces);
  for (i = 0; days[2][i]; i++) printf("%d ", days[2][i]);
  printf("\n%ls %ls|%8ls|%.3ls|%-6ls|%d\n", days[0], table[1].name, table[2].name, L"precise", braces, table[0].n);
  wcscpy(a, days[1]);
  wcscat(a, L", ");
  wcsncat(a, days[0], 3);
  printf("%ls %d %d %d\n", a, words(L"a few w0rds, 3 of x9"), L"index"[2], *(L"deref" + 1));
  printf("%d %d %d %d\n", sign(wcscmp(L"abc", L"abd")), sign(wcscmp(L"b", L"a")), sign(wcscmp(a, a)), sign(wcsncmp(L"abx", L"aby", 2)));
  printf("%d %d %ls %ls\n", (int)(wcschr(a, L'd') - a), wcsrchr(a, L'z') == NULL, wcsrchr(a, L'o'), wcsstr(a, L"day"));
  printf("%zu %zu %ls\n", wcsspn(L"aabbc", L"ab"), wcscspn(L"hello", L"lo"), wcspbrk(L"one;two", L";,"));
  for (p = wcstok(a, L", s", &rest); p; p = wcstok(NULL, L", s", &rest)) printf("[%ls]", p);
  wmemset(a, L'*', 5);
  a[5] = 0;
  wmemmove(a + 1, a, 3);
  printf("%ls %d %d\n", a, wmemcmp(a, L"****+", 4), wmemchr(a, L'+', 5) == NULL);
  for (p = wcscpy(a, L"MiXed 12 \x263a"); *p; p++) *p = iswupper(*p) ? towlower(*p) : towupper(*p);
  printf("%zu %d %d %d\n", wcslen(a), a[0], a[1], a[9]);
  i = mbstowcs(a, "many bytes", 40);
  printf("%zu %ls %zu %zu\n", i, a, mbstowcs(NULL, "12345", 0), wcstombs(NULL, L"123", 0));
  i = wcstombs(text, L"back again", sizeof text);
  printf("%zu %s %d %d %d\n", i, text, (int)wcstombs(text, L"\x263a", 5), btowc('x'), wctob(L'y'));
  printf("%ld %lu %g", wcstol(L" -42rest", &rest, 10), wcstoul(L"ff", NULL, 16), wcstod(L"2.5e3", NULL));
  printf(" %ls\n", rest);
  printf("%zu %d %d %ls\n", sizeof mixed, mixed[1], mixed[8], "a" L"b" "c");
  {
    struct { wchar_t name[4]; int n; } s = {"x" L"yz", 3};
    wchar_t word[8] = L"~~~~~~~", set[8] = L"~~~~~~~", chars[8] = L"~~~~~~~";
    i = sscanf("words abc[1] x", "%ls %l[a-z]%3lc %*ls%n", word, set, chars, &s.n);
    printf("%zu %ls %d %ls %d %ls %d %ls\n", i, word, word[6], set, set[4], chars, s.n, s.name);
    printf("[%lc] [%4lc] [%-3lc] [%c]\n", L'x', (wint_t)'y', L'z', 'c');
  }
  {
    mbstate_t state = {0};
    const char *from = "some bytes", *wrong = "a\xe9";
    const wchar_t *kinds = L"aZ5 \n~\xe9", *chars = a, *sign = L"a\x263a";
    const char *names[] = {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"};
    for (; *kinds; kinds++)
      for (i = 0; i < 12; i++) printf("%d", iswctype(*kinds, wctype(names[i])) != 0);
    printf(" %d %d\n", wctype("nothing") == 0, wctrans("upper") == 0);
    printf("%c%c%c %d\n", (int)towctrans(L'a', wctrans("toupper")), (int)towctrans(L'A', wctrans("tolower")), (int)towctrans(L'*', wctrans("toupper")), mbsinit(&state) != 0);
    i = mbrtowc(a, "xyz", 3, &state);
    printf("%zu %d %zu %zu %ld %zu\n", i, a[0], mbrtowc(NULL, "", 1, &state), mbrtowc(NULL, NULL, 0, &state), (long)mbrlen("", 0, &state), mbrlen("z", 1, NULL));
    i = mbsrtowcs(a, &from, 40, &state);
    printf("%zu %d %ls %zu\n", i, from == NULL, a, wcrtomb(text, L'z', NULL));
    i = wcsrtombs(text, &chars, 4, &state);
    printf("%zu %d %.4s ", i, (int)(chars - a), text);
    i = wcsrtombs(text, &chars, 40, &state);
    printf("%zu %d %s ", i, chars == NULL, text);
    errno = 0;
    i = mbsrtowcs(a, &wrong, 40, &state);
    printf("%d %d %d ", (int)i, errno == EILSEQ, *wrong == '\xe9');
    errno = 0;
    i = wcsrtombs(text, &sign, 40, &state);
    printf("%d %d %x\n", (int)i, errno == EILSEQ, (unsigned)*sign);
    wmemset(a, L'.', 9);
    a[9] = 0;
    i = wcsxfrm(a, L"abc", 3);
    printf("%zu %ls %zu %lld %llu %g\n", i, a, wcsxfrm(NULL, L"abcd", 0), wcstoll(L"-99", NULL, 10), wcstoull(L"7f", NULL, 16), wcstof(L"1.5", NULL));
  }
  qsort(days, 2, sizeof *days, compare);
  letter = L'\x3b1';
  printf("%ls %d %d\n", days[0], letter, iswalpha(letter) != 0);
  return 0;
}

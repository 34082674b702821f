#ifndef _WCHAR_H
#define _WCHAR_H
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>
#ifndef WCHAR_MAX
#define WCHAR_MAX 2147483647
#define WCHAR_MIN (-WCHAR_MAX - 1)
#endif
typedef struct { int count; } mbstate_t;
static inline size_t wcslen(const wchar_t *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}
static inline wchar_t *wmemcpy(wchar_t *to, const wchar_t *from, size_t n) { return memcpy(to, from, n * sizeof *to); }
static inline wchar_t *wmemmove(wchar_t *to, const wchar_t *from, size_t n) { return memmove(to, from, n * sizeof *to); }
static inline wchar_t *wmemset(wchar_t *to, wchar_t c, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) to[i] = c;
  return to;
}
static inline int wmemcmp(const wchar_t *a, const wchar_t *b, size_t n) {
  for (; n > 0; n--, a++, b++)
    if (*a != *b) return *a < *b ? -1 : 1;
  return 0;
}
static inline wchar_t *wmemchr(const wchar_t *s, wchar_t c, size_t n) {
  for (; n > 0; n--, s++)
    if (*s == c) return (wchar_t *)s;
  return NULL;
}
static inline wchar_t *wcscpy(wchar_t *to, const wchar_t *from) { return wmemcpy(to, from, wcslen(from) + 1); }
static inline wchar_t *wcsncpy(wchar_t *to, const wchar_t *from, size_t n) {
  size_t i = 0;
  for (; i < n && from[i]; i++) to[i] = from[i];
  for (; i < n; i++) to[i] = 0;
  return to;
}
static inline wchar_t *wcscat(wchar_t *to, const wchar_t *from) {
  wcscpy(to + wcslen(to), from);
  return to;
}
static inline wchar_t *wcsncat(wchar_t *to, const wchar_t *from, size_t n) {
  wchar_t *end = to + wcslen(to);
  for (; n > 0 && *from; n--) *end++ = *from++;
  *end = 0;
  return to;
}
static inline int wcscmp(const wchar_t *a, const wchar_t *b) {
  for (; *a && *a == *b; a++) b++;
  return (*a > *b) - (*a < *b);
}
static inline int wcsncmp(const wchar_t *a, const wchar_t *b, size_t n) {
  for (; n > 0; n--, a++, b++)
    if (*a != *b || *a == 0) return (*a > *b) - (*a < *b);
  return 0;
}
static inline int wcscoll(const wchar_t *a, const wchar_t *b) { return wcscmp(a, b); }
static inline wchar_t *wcschr(const wchar_t *s, wchar_t c) { return wmemchr(s, c, wcslen(s) + 1); }
static inline wchar_t *wcsrchr(const wchar_t *s, wchar_t c) {
  const wchar_t *e;
  for (e = s + wcslen(s); *e != c; e--)
    if (e == s) return NULL;
  return (wchar_t *)e;
}
static inline size_t wcsspn(const wchar_t *s, const wchar_t *of) {
  size_t n = 0;
  while (s[n] && wcschr(of, s[n])) n++;
  return n;
}
static inline size_t wcscspn(const wchar_t *s, const wchar_t *of) {
  size_t n = 0;
  while (s[n] && !wcschr(of, s[n])) n++;
  return n;
}
static inline wchar_t *wcspbrk(const wchar_t *s, const wchar_t *of) {
  s += wcscspn(s, of);
  return *s ? (wchar_t *)s : NULL;
}
static inline wchar_t *wcsstr(const wchar_t *s, const wchar_t *part) {
  size_t n = wcslen(part);
  for (;; s++) {
    if (wcsncmp(s, part, n) == 0) return (wchar_t *)s;
    if (*s == 0) return NULL;
  }
}
static inline wchar_t *wcstok(wchar_t *s, const wchar_t *between, wchar_t **rest) {
  if (s == NULL) s = *rest;
  s += wcsspn(s, between);
  *rest = s + wcscspn(s, between);
  if (*rest == s) return NULL;
  if (**rest) *(*rest)++ = 0;
  return s;
}
static inline size_t __upc_number(const wchar_t *s, char *to, size_t room) {
  size_t i;
  for (i = 0; i + 1 < room && s[i] > 0 && s[i] < 128; i++) to[i] = s[i];
  to[i] = 0;
  return i;
}
static inline long wcstol(const wchar_t *s, wchar_t **end, int base) {
  char text[128], *e;
  long v;
  __upc_number(s, text, sizeof text);
  v = strtol(text, &e, base);
  if (end) *end = (wchar_t *)s + (e - text);
  return v;
}
static inline unsigned long wcstoul(const wchar_t *s, wchar_t **end, int base) {
  char text[128], *e;
  unsigned long v;
  __upc_number(s, text, sizeof text);
  v = strtoul(text, &e, base);
  if (end) *end = (wchar_t *)s + (e - text);
  return v;
}
static inline double wcstod(const wchar_t *s, wchar_t **end) {
  char text[512], *e;
  double v;
  __upc_number(s, text, sizeof text);
  v = strtod(text, &e);
  if (end) *end = (wchar_t *)s + (e - text);
  return v;
}
static inline wint_t btowc(int c) { return c >= 0 && c < 128 ? c : WEOF; }
static inline int wctob(wint_t c) { return c >= 0 && c < 128 ? c : -1; }
static inline long long wcstoll(const wchar_t *s, wchar_t **end, int base) { return wcstol(s, end, base); }
static inline unsigned long long wcstoull(const wchar_t *s, wchar_t **end, int base) { return wcstoul(s, end, base); }
static inline float wcstof(const wchar_t *s, wchar_t **end) { return (float)wcstod(s, end); }
#define wcstold wcstod
static inline size_t wcsxfrm(wchar_t *to, const wchar_t *from, size_t n) {
  size_t all = wcslen(from);
  if (n > 0) wmemcpy(to, from, all < n ? all + 1 : n);
  return all;
}
/* Of the C locale, where a character is a byte: no state is ever left. */
static inline int mbsinit(const mbstate_t *state) { return state == NULL || state->count == 0; }
static inline size_t mbrtowc(wchar_t *to, const char *s, size_t n, mbstate_t *state) {
  if (s == NULL) return 0;
  if (n == 0) return -2;
  if ((unsigned char)*s > 127) {
    errno = EILSEQ;
    return -1;
  }
  if (to) *to = *s;
  return *s != 0;
}
static inline size_t mbrlen(const char *s, size_t n, mbstate_t *state) { return mbrtowc(NULL, s, n, state); }
static inline size_t wcrtomb(char *to, wchar_t c, mbstate_t *state) {
  if (to && (c < 0 || c > 127)) {
    errno = EILSEQ;
    return -1;
  }
  if (to) *to = c;
  return 1;
}
static inline size_t mbsnrtowcs(wchar_t *to, const char **from, size_t bytes, size_t n, mbstate_t *state) {
  size_t i;
  for (i = 0; i < bytes && (to == NULL || i < n); i++) {
    if (mbrtowc(to ? to + i : NULL, *from + i, 1, state) == (size_t)-1) {
      if (to) *from += i;
      return -1;
    }
    if ((*from)[i] == 0) {
      if (to) *from = NULL;
      return i;
    }
  }
  if (to) *from += i;
  return i;
}
static inline size_t mbsrtowcs(wchar_t *to, const char **from, size_t n, mbstate_t *state) {
  return mbsnrtowcs(to, from, (size_t)-1, n, state);
}
static inline size_t wcsnrtombs(char *to, const wchar_t **from, size_t chars, size_t n, mbstate_t *state) {
  size_t i;
  char c;
  for (i = 0; i < chars && (to == NULL || i < n); i++) {
    if (wcrtomb(to ? to + i : &c, (*from)[i], state) == (size_t)-1) {
      if (to) *from += i;
      return -1;
    }
    if ((*from)[i] == 0) {
      if (to) *from = NULL;
      return i;
    }
  }
  if (to) *from += i;
  return i;
}
static inline size_t wcsrtombs(char *to, const wchar_t **from, size_t n, mbstate_t *state) {
  return wcsnrtombs(to, from, (size_t)-1, n, state);
}
#endif

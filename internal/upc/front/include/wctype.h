#ifndef _WCTYPE_H
#define _WCTYPE_H
#include <stddef.h>
#include <ctype.h>
typedef int wint_t;
#define WEOF (-1)
/* In the C locale only characters of ASCII are of any kind. */
#define __UPC_KIND(name, of) static inline int name(wint_t c) { return c >= 0 && c < 128 && of(c); }
__UPC_KIND(iswalpha, isalpha)
__UPC_KIND(iswdigit, isdigit)
__UPC_KIND(iswalnum, isalnum)
__UPC_KIND(iswspace, isspace)
__UPC_KIND(iswupper, isupper)
__UPC_KIND(iswlower, islower)
__UPC_KIND(iswblank, isblank)
__UPC_KIND(iswcntrl, iscntrl)
__UPC_KIND(iswgraph, isgraph)
__UPC_KIND(iswprint, isprint)
__UPC_KIND(iswpunct, ispunct)
__UPC_KIND(iswxdigit, isxdigit)
#undef __UPC_KIND
static inline wint_t towupper(wint_t c) { return iswlower(c) ? c - 'a' + 'A' : c; }
static inline wint_t towlower(wint_t c) { return iswupper(c) ? c - 'A' + 'a' : c; }
typedef int wctype_t;
typedef int wctrans_t;
static inline wctype_t wctype(const char *name) {
  static const char *names[] = {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"};
  int i, k;
  for (i = 0; i < 12; i++) {
    for (k = 0; name[k] && name[k] == names[i][k]; k++);
    if (name[k] == names[i][k]) return i + 1;
  }
  return 0;
}
static inline int iswctype(wint_t c, wctype_t of) {
  switch (of) {
  case 1: return iswalnum(c);
  case 2: return iswalpha(c);
  case 3: return iswblank(c);
  case 4: return iswcntrl(c);
  case 5: return iswdigit(c);
  case 6: return iswgraph(c);
  case 7: return iswlower(c);
  case 8: return iswprint(c);
  case 9: return iswpunct(c);
  case 10: return iswspace(c);
  case 11: return iswupper(c);
  case 12: return iswxdigit(c);
  }
  return 0;
}
static inline wctrans_t wctrans(const char *name) {
  const char *of = *name == 't' && name[1] == 'o' ? name + 2 : "";
  wctype_t kind = wctype(of);
  return kind == 7 || kind == 11 ? kind : 0;
}
static inline wint_t towctrans(wint_t c, wctrans_t to) { return to == 7 ? towlower(c) : to == 11 ? towupper(c) : c; }
#endif

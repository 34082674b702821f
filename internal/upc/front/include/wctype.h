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
#endif

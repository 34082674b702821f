#ifndef _LOCALE_H
#define _LOCALE_H
#define LC_CTYPE 0
#define LC_NUMERIC 1
#define LC_TIME 2
#define LC_COLLATE 3
#define LC_MONETARY 4
#define LC_ALL 6
#include <stddef.h>
struct lconv {
  char *decimal_point, *thousands_sep, *grouping, *int_curr_symbol, *currency_symbol, *mon_decimal_point, *mon_thousands_sep;
  char *mon_grouping, *positive_sign, *negative_sign;
  char int_frac_digits, frac_digits, p_cs_precedes, p_sep_by_space, n_cs_precedes, n_sep_by_space, p_sign_posn, n_sign_posn;
  char int_p_cs_precedes, int_p_sep_by_space, int_n_cs_precedes, int_n_sep_by_space, int_p_sign_posn, int_n_sign_posn;
};
/* There is locale "C" alone. */
static inline char *setlocale(int category, const char *name) {
  (void)category;
  if (name && name[0] && !(name[0] == 'C' && !name[1]) && !(name[0] == 'P' && name[1] == 'O'))
    return 0;
  return "C";
}
static inline struct lconv *localeconv(void) {
  static struct lconv c = {
    ".", "", "", "", "", "", "", "", "", "", 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127
  };
  return &c;
}
#endif

#ifndef _FENV_H
#define _FENV_H
/* Floating point rounds to nearest and has no flags that a program sees, which C99 7.6 allows: macros of others are not defined. */
typedef unsigned fenv_t;
typedef unsigned short fexcept_t;
#define FE_ALL_EXCEPT 0
#define FE_TONEAREST 0
#define FE_DFL_ENV ((const fenv_t *)0)
static inline int feclearexcept(int e) { return e != 0; }
static inline int fetestexcept(int e) { return e & 0; }
static inline int feraiseexcept(int e) { return e != 0; }
static inline int fegetexceptflag(fexcept_t *f, int e) { *f = 0; return e != 0; }
static inline int fesetexceptflag(const fexcept_t *f, int e) { return f != 0 && e != 0; }
static inline int fegetround(void) { return FE_TONEAREST; }
static inline int fesetround(int r) { return r != FE_TONEAREST; }
static inline int fegetenv(fenv_t *e) { *e = 0; return 0; }
static inline int feholdexcept(fenv_t *e) { *e = 0; return 0; }
static inline int fesetenv(const fenv_t *e) { return e != 0 && *e != 0; }
static inline int feupdateenv(const fenv_t *e) { return fesetenv(e); }
#endif

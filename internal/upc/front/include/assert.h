#ifndef _ASSERT_H
#define _ASSERT_H
void __assert_fail(const char *what, const char *file, int line, const char *function);
#endif
#undef assert
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
#define assert(e) ((e) ? (void)0 : __assert_fail(#e, __FILE__, __LINE__, __func__))
#endif

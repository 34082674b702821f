#ifndef _BUILTINS_H
#define _BUILTINS_H
/* Of gcc's functions that need no header, those that no header has without the __builtin_ before. */
int __builtin_popcount(unsigned x);
int __builtin_popcountl(unsigned long x);
int __builtin_popcountll(unsigned long long x);
int __builtin_parity(unsigned x);
int __builtin_parityl(unsigned long x);
int __builtin_parityll(unsigned long long x);
int __builtin_clz(unsigned x);
int __builtin_clzl(unsigned long x);
int __builtin_clzll(unsigned long long x);
int __builtin_ctz(unsigned x);
int __builtin_ctzl(unsigned long x);
int __builtin_ctzll(unsigned long long x);
int __builtin_ffsl(long x);
int __builtin_ffsll(long long x);
unsigned short __builtin_bswap16(unsigned short x);
unsigned __builtin_bswap32(unsigned x);
unsigned long __builtin_bswap64(unsigned long x);
int __builtin_isnan(double x);
int __builtin_isinf(double x);
int __builtin_isfinite(double x);
int __builtin_signbit(double x);
#endif

#ifndef _SETJMP_H
#define _SETJMP_H
typedef unsigned long jmp_buf[2];
typedef jmp_buf sigjmp_buf;
int __upc_setjmp(unsigned long *env, int place);
void longjmp(unsigned long *env, int value);
#define setjmp(env) __upc_setjmp(env, 0)
#define _setjmp(env) __upc_setjmp(env, 0)
#define sigsetjmp(env, mask) __upc_setjmp(env, mask)
#define siglongjmp longjmp
#define _longjmp longjmp
#endif

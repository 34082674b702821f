#ifndef _STDARG_H
#define _STDARG_H
typedef unsigned long *va_list;
va_list __upc_va_start(void);
#define va_start(ap, last) ((void)((ap) = __upc_va_start()))
#define va_arg(ap, type) (__upc_va_arg(ap, type))
#define va_copy(to, from) ((void)((to) = (from)))
#define va_end(ap) ((void)(ap))
#endif

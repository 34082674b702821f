#ifndef _STDIO_H
#define _STDIO_H
#include <stddef.h>
typedef void FILE;
FILE *__upc_stdout(void);
FILE *__upc_stderr(void);
#define stdout (__upc_stdout())
#define stderr (__upc_stderr())
#define EOF (-1)
int printf(const char *format, ...);
int fprintf(FILE *stream, const char *format, ...);
int sprintf(char *str, const char *format, ...);
int snprintf(char *str, size_t size, const char *format, ...);
int puts(const char *s);
int fputs(const char *s, FILE *stream);
int putchar(int c);
int fflush(FILE *stream);
#endif

#ifndef _STDIO_H
#define _STDIO_H
#include <stddef.h>
typedef void FILE;
FILE *__upc_stdin(void);
FILE *__upc_stdout(void);
FILE *__upc_stderr(void);
#define stdin (__upc_stdin())
#define stdout (__upc_stdout())
#define stderr (__upc_stderr())
#define EOF (-1)
int printf(const char *format, ...);
int fprintf(FILE *stream, const char *format, ...);
int sprintf(char *str, const char *format, ...);
int snprintf(char *str, size_t size, const char *format, ...);
int vprintf(const char *format, unsigned long *ap);
int vfprintf(FILE *stream, const char *format, unsigned long *ap);
int vsprintf(char *str, const char *format, unsigned long *ap);
int vsnprintf(char *str, size_t size, const char *format, unsigned long *ap);
int puts(const char *s);
int fputs(const char *s, FILE *stream);
int putchar(int c);
int fflush(FILE *stream);
#define BUFSIZ 8192
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
FILE *fopen(const char *restrict name, const char *restrict mode);
int fclose(FILE *stream);
int fgetc(FILE *stream);
int getc(FILE *stream);
int getchar(void);
int ungetc(int c, FILE *stream);
char *fgets(char *restrict s, int n, FILE *restrict stream);
int fputc(int c, FILE *stream);
int putc(int c, FILE *stream);
size_t fread(void *restrict p, size_t size, size_t n, FILE *restrict stream);
size_t fwrite(const void *restrict p, size_t size, size_t n, FILE *restrict stream);
int feof(FILE *stream);
int ferror(FILE *stream);
int fseek(FILE *stream, long offset, int whence);
long ftell(FILE *stream);
void rewind(FILE *stream);
int remove(const char *name);
int fscanf(FILE *restrict stream, const char *restrict format, ...);
int scanf(const char *restrict format, ...);
int sscanf(const char *restrict s, const char *restrict format, ...);
#endif

#ifndef _STDIO_H
#define _STDIO_H
#include <stddef.h>
#include <stdarg.h>
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
int vprintf(const char *format, va_list ap);
int vfprintf(FILE *stream, const char *format, va_list ap);
int vsprintf(char *str, const char *format, va_list ap);
int vsnprintf(char *str, size_t size, const char *format, va_list ap);
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
#define L_tmpnam 20
#define FILENAME_MAX 4096
#define FOPEN_MAX 16
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
typedef long fpos_t;
void perror(const char *s);
int fileno(FILE *stream);
int rename(const char *from, const char *to);
void clearerr(FILE *stream);
FILE *tmpfile(void);
FILE *freopen(const char *restrict name, const char *restrict mode, FILE *restrict stream);
long getline(char **line, size_t *size, FILE *stream);
int setvbuf(FILE *restrict stream, char *restrict buf, int mode, size_t size);
#define setbuf(f, b) ((void)setvbuf(f, b, _IOFBF, BUFSIZ))
#define setlinebuf(f) ((void)setvbuf(f, 0, _IOLBF, 0))
#define fgetpos(f, p) ((*(p) = ftell(f)) < 0)
#define fsetpos(f, p) fseek(f, *(p), SEEK_SET)
#define fseeko fseek
#define ftello ftell
#endif

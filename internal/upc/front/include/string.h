#ifndef _STRING_H
#define _STRING_H
#include <stddef.h>
void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *p, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strcpy(char *dst, const char *src);
char *strncpy(char *dst, const char *src, size_t n);
char *strcat(char *dst, const char *src);
char *strdup(const char *s);
char *strstr(const char *s, const char *sub);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strncat(char *dst, const char *src, size_t n);
char *strpbrk(const char *s, const char *set);
char *strtok(char *s, const char *set);
size_t strspn(const char *s, const char *set);
size_t strcspn(const char *s, const char *set);
void *memchr(const void *p, int c, size_t n);
#include <strings.h>
char *strerror(int e);
char *strtok_r(char *s, const char *set, char **state);
char *strndup(const char *s, size_t n);
size_t strnlen(const char *s, size_t n);
char *stpcpy(char *dst, const char *src);
char *strsep(char **s, const char *set);
char *strcasestr(const char *s, const char *sub);
size_t strxfrm(char *dst, const char *src, size_t n);
#define strcoll(a, b) strcmp(a, b)
#endif

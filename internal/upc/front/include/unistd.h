#ifndef _UNISTD_H
#define _UNISTD_H
#include <sys/types.h>
#include <getopt.h>
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _POSIX_VERSION 200809L
#define _SC_ARG_MAX 0
#define _SC_CLK_TCK 2
#define _SC_OPEN_MAX 4
#define _SC_PAGESIZE 30
#define _SC_PAGE_SIZE 30
#define _SC_NPROCESSORS_CONF 83
#define _SC_NPROCESSORS_ONLN 84
#define _SC_PHYS_PAGES 85
extern char **environ;
unsigned sleep(unsigned seconds);
int usleep(useconds_t microseconds);
unsigned alarm(unsigned seconds);
pid_t getpid(void);
pid_t getppid(void);
uid_t getuid(void);
uid_t geteuid(void);
gid_t getgid(void);
gid_t getegid(void);
int gethostname(char *name, size_t size);
int isatty(int fd);
ssize_t read(int fd, void *buf, size_t n);
ssize_t write(int fd, const void *buf, size_t n);
int close(int fd);
off_t lseek(int fd, off_t offset, int whence);
int unlink(const char *name);
int rmdir(const char *name);
int chdir(const char *name);
int access(const char *name, int mode);
int truncate(const char *name, off_t size);
int ftruncate(int fd, off_t size);
int fsync(int fd);
char *getcwd(char *buf, size_t size);
long sysconf(int name);
int getpagesize(void);
void _exit(int status);
#endif

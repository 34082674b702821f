#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Files and formatted input, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#else
#define MYTHREAD 0
#define upc_barrier
#endif
static void words(const char *s, const char *format) {
  int a = -1, b = -1, n;
  char w[20] = "", v[20] = "";
  n = sscanf(s, format, &a, w, &b, v);
  printf("%d: %d [%s] %d [%s]\n", n, a, w, b, v);
}
int main(void) {
  char name[40], line[16], text[80], c, d[3] = {0};
  FILE *f;
  int i, n, x, y;
  long l;
  unsigned u;
  short h;
  unsigned char tiny;
  float fl;
  double dbl;
  struct { int key; double value; } in[3], out[3] = {{1, 0.5}, {2, 0.25}, {3, -1}};
  sprintf(name, "input-%d.tmp", MYTHREAD);
  if (fopen("no/such/file", "r") != NULL) printf("there is\n");
  f = fopen(name, "w");
  fprintf(f, "%d %s\n", 12, "first");
  fputs("a line that is longer than the buffer\n", f);
  fputc('x', f);
  fprintf(f, "\n3 4.5e1 0x1F -7 tail");
  printf("close %d\n", fclose(f));
  f = fopen(name, "r");
  while (fgets(line, sizeof line, f)) printf("<%s>", line);
  printf(" %d %d %d\n", !!feof(f), ferror(f), getc(f));
  rewind(f);
  printf("%d ", fscanf(f, "%d%s", &x, text)); printf("%d %s %ld\n", x, text, ftell(f));
  printf("%d ", fscanf(f, " %[^\n]%*c%c", text, &c)); printf("%s %c\n", text, c);
  printf("%d ", fscanf(f, "%d %lf %i %ld%n", &x, &dbl, &y, &l, &n)); printf("%d %g %d %ld %d\n", x, dbl, y, l, n);
  c = getc(f); printf("[%c]", c); printf("%c", ungetc('u', f)); printf("%d %s", fscanf(f, "%s", text), text); printf(" %d\n", fscanf(f, "%d", &x));
  fseek(f, 3, SEEK_SET); printf("%s", fgets(line, 7, f)); fseek(f, -4, SEEK_END); printf(" %s\n", fgets(line, 9, f));
  fclose(f);
  f = fopen(name, "wb+");
  printf("%d ", (int)fwrite(out, sizeof out[0], 3, f)); rewind(f);
  memset(in, 0, sizeof in);
  n = fread(in, sizeof in[0], 2, f); printf("%d %d ", n, feof(f)); n = fread(in + 2, sizeof in[0], 2, f); printf("%d %d %d %g\n", n, !!feof(f), in[1].key, in[2].value);
  fclose(f);
  f = fopen(name, "a"); fputs("!", f); fclose(f);
  f = fopen(name, "r"); for (n = 0; (i = fgetc(f)) != EOF; n++) y = i; printf("%d %c\n", n, y); fclose(f);
  printf("%d\n", remove(name));
  words("12 abc 34 def", "%d %s %d %s"); words("12abc", "%d%s%d"); words("x", "%d"); words("", "%d"); words("  7,rest", "%d,%3[a-z]%*2c%d");
  words("9 %q5", "%d %%%[pq]%d"); words("0x1f z", "%i %[^ ]"); words("-3", "%1d%s"); words("5]a", "%d%[]a]"); words("1 2", "%d%*d%d");
  n = sscanf("70000 300 4294967295 -1.5e-3 .25 ab", "%hd %hhu %u %f %lf %2c", &h, &tiny, &u, &fl, &dbl, d); printf("%d %d %d %u %g %g %s\n", n, h, tiny, u, fl, dbl, d);
  n = sscanf("077 ff 1e5x", "%o %x %f%c", &u, &x, &fl, &c); printf("%d %u %d %g %c\n", n, u, x, fl, c);
  if (MYTHREAD == 0) {
    n = scanf("%9s %s", text, text + 10); printf("%d %s %s %d", n, text, text + 10, getchar());
    printf(" %s", fgets(line, sizeof line, stdin)); printf("%d %d\n", fgets(line, sizeof line, stdin) == NULL, getchar());
  }
  return 0;
}

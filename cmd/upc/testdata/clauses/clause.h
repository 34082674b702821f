/* What the programs of this folder check with. Each is a clause of the UPC Language and
 * Library Specifications, version 1.3, of which it has the number; comments cite paragraphs. */
#ifndef CLAUSE_H
#define CLAUSE_H
#include <stdio.h>
static int clause_checks, clause_failures;
#define CHECK(e) (clause_checks++, (e) ? (void)0 : (void)(clause_failures++, printf("thread %d: %s:%d: %s\n", MYTHREAD, __FILE__, __LINE__, #e)))
/* What main returns. */
static int clause_done(void) {
  if (MYTHREAD == THREADS - 1)
    printf("%d checks\n", clause_checks);
  return clause_failures != 0;
}
#endif

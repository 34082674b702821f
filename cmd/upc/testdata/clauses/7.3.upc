// Standard types: 7.3.1 operations, 7.3.2 types, 7.3.3 flags of synchronization.
#include <upc_types.h>
#include <upc_types.h>
#include "clause.h"

#define OPS (UPC_ADD | UPC_MULT | UPC_AND | UPC_OR | UPC_XOR | UPC_LOGAND | UPC_LOGOR | UPC_MIN | UPC_MAX)
#define FLAGS (UPC_IN_ALLSYNC | UPC_IN_MYSYNC | UPC_IN_NOSYNC | UPC_OUT_ALLSYNC | UPC_OUT_MYSYNC | UPC_OUT_NOSYNC)

/* 7.3.1, 2, 7.3.2, 2 and 7.3.3, 2: what #if can use. */
#if UPC_ADD <= 0 || OPS >= 65536
#error operations
#endif
#if UPC_CHAR <= 0 || UPC_PTS <= 0 || UPC_LDOUBLE >= 65536
#error types
#endif
#if UPC_IN_ALLSYNC <= 0 || FLAGS >= 64
#error flags
#endif

static const upc_op_t ops[] = { UPC_ADD, UPC_MULT, UPC_AND, UPC_OR, UPC_XOR, UPC_LOGAND, UPC_LOGOR, UPC_MIN, UPC_MAX };
static const upc_type_t types[] = {
  UPC_CHAR, UPC_UCHAR, UPC_SHORT, UPC_USHORT, UPC_INT, UPC_UINT, UPC_LONG, UPC_ULONG, UPC_LLONG, UPC_ULLONG, UPC_INT8,
  UPC_UINT8, UPC_INT16, UPC_UINT16, UPC_INT32, UPC_UINT32, UPC_INT64, UPC_UINT64, UPC_FLOAT, UPC_DOUBLE, UPC_LDOUBLE, UPC_PTS
};
static const upc_flag_t flags[] = { UPC_IN_ALLSYNC, UPC_IN_MYSYNC, UPC_IN_NOSYNC, UPC_OUT_ALLSYNC, UPC_OUT_MYSYNC, UPC_OUT_NOSYNC };
enum { nops = sizeof ops / sizeof ops[0], ntypes = sizeof types / sizeof types[0], nflags = sizeof flags / sizeof flags[0] };

int main(void) {
  int i, j;
  /* 7.3.1, 2: every combination is another value, so none is made of others. */
  for (i = 0; i < nops; i++) {
    upc_op_t others = 0;
    for (j = 0; j < nops; j++)
      others |= j == i ? 0 : ops[j];
    CHECK(ops[i] > 0 && (ops[i] | others) != others);
  }
  CHECK(sizeof UPC_ADD == sizeof(upc_op_t) && (upc_op_t)0.5 == 0);
  /* 7.3.2, 2 */
  for (i = 0; i < ntypes; i++) {
    CHECK(types[i] > 0 && types[i] < 65536);
    for (j = 0; j < i; j++)
      CHECK(types[i] != types[j]);
  }
  CHECK(sizeof UPC_INT == sizeof(upc_type_t) && (upc_type_t)0.5 == 0);
  /* 7.3.3, 2 */
  for (i = 0; i < nflags; i++) {
    upc_flag_t others = 0;
    for (j = 0; j < nflags; j++)
      others |= j == i ? 0 : flags[j];
    CHECK(flags[i] > 0 && (flags[i] | others) != others);
  }
  CHECK(sizeof UPC_IN_MYSYNC == sizeof(upc_flag_t) && (upc_flag_t)0.5 == 0);
  return clause_done();
}

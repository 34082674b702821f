#include <upc.h>
#pragma upc relaxed

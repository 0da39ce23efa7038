// A library whose constructor allocates: the loader calls it, so the stack's end is the loader's entry point.
#include <stdlib.h>

void* volatile early_block;

__attribute__((constructor)) void allocate_early(void) { early_block = malloc(54321); }

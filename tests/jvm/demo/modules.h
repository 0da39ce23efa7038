// The modules of the demo, as its JNI functions see them. Which team owns which stands in owners.csv.
#ifndef CADASTRE_TESTS_JVM_DEMO_MODULES_H_
#define CADASTRE_TESTS_JVM_DEMO_MODULES_H_

#include <cstdint>

#include "tests/jvm/demo/held_blocks.h"

namespace billing {
const demo::HeldBlocks& RenderInvoices(uint64_t goal);  // holds up to `goal` bytes, or a little above
}
namespace pricing {
const demo::HeldBlocks& LoadTables(uint64_t goal);
}
namespace search {
const demo::HeldBlocks& BuildIndex(uint64_t goal);
}
// A C library that no rule names.
const demo::HeldBlocks& VendorLoad(uint64_t goal);

#endif  // CADASTRE_TESTS_JVM_DEMO_MODULES_H_

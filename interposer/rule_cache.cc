#include "interposer/rule_cache.h"

namespace cadastre {
WordCache g_rule_cache;
}  // namespace cadastre

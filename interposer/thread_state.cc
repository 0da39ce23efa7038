#include "interposer/thread_state.h"

namespace cadastre {

extern "C" {
__thread ThreadState cadastre_thread_state;
}

}  // namespace cadastre

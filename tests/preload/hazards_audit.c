// The smallest auditor (rtld-audit(7)): with it the loader makes another namespace, whose libraries take their share of static TLS.
#define _GNU_SOURCE
#include <link.h>

static __thread char some[512];

unsigned int la_version(unsigned int version) {
  some[0] = 1;
  return version;
}
unsigned int la_objopen(struct link_map* map, Lmid_t id, uintptr_t* cookie) { return LA_FLG_BINDTO | LA_FLG_BINDFROM; }

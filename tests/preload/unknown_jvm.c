// Half a JVM: a library that describes itself as HotSpot does, but not completely, and makes the key that libjvm makes.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const char *type, *field, *field_type;
  int32_t is_static;
  uint64_t offset;
  void* address;
} FieldRow;
typedef struct {
  const char *type, *super;
  int32_t is_oop, is_integer, is_unsigned;
  uint64_t bytes;
} TypeRow;
typedef struct {
  const char* name;
  int32_t value;
} IntRow;

static const char* release = "99.0.1+2";
static int32_t major = 99;
static uint64_t heaps;
static FieldRow fields[] = {{"Abstract_VM_Version", "_s_vm_release", "const char*", 1, 0, &release},
                            {"Abstract_VM_Version", "_vm_major_version", "int", 1, 0, &major},
                            {"CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 1, 0, &heaps},
                            {"CodeCache", "_low_bound", "address", 1, 0, &heaps},
                            {"CodeCache", "_high_bound", "address", 1, 0, &heaps},
                            {0}};
static TypeRow types[] = {{0}};
static IntRow constants[] = {{0}};
__attribute__((visibility("default"))) FieldRow* gHotSpotVMStructs = fields;
__attribute__((visibility("default"))) TypeRow* gHotSpotVMTypes = types;
__attribute__((visibility("default"))) IntRow* gHotSpotVMIntConstants = constants;

__attribute__((visibility("default"))) void* start_vm(void) {
  pthread_key_t key;
  pthread_key_create(&key, NULL);
  pthread_setspecific(key, &key);
  void* block = NULL;
  for (int i = 0; i < 100; i++) block = malloc(1000);
  return block;
}

// Stacks as a tree: a node is a frame and the node of its caller, so equal stacks end in one node, and two stacks that
// share their older frames share those nodes. What a thread remembers of its last stack (stack_memo.h) includes them: a
// stack of which two frames are new costs two steps, however deep it is, and is neither hashed nor compared as a whole.
// A node also says which site its stack has.
//
//   root ── main+12 ── Parse+80 ─┬─ Parse+80 ── ...        a node knows its youngest child and its next older sibling
//                                └─ Token+33 : site 7
//
// No hash table: one of as many nodes is cold memory at each step, while nodes lie in the order in which they were
// made, which is near the order in which they are wanted again. The price is a list of siblings; where it is long (an
// interpreter's loop) a frame that is not near its beginning is not looked for.
// Two threads that bring the same stack at once may make two nodes of it: the site table alone says what a site is, and
// gives both the same one.
// Cost: 24 bytes a node. Thread- and signal-safety: lock-free after Init; a node is there by one compare-and-swap. One
// that is left before is lost. Errors: 0 where there is no room.
//
// Example:
//   StackTree tree;                                           // zero bytes are a tree without room
//   tree.Init(1 << 20);
//   uint32_t node = tree.Child(StackTree::kRoot, oldest_frame);
//   if (node != 0) node = tree.Child(node, newer_frame);
//   if (node != 0 && tree.site(node) == 0) tree.SetSite(node, Intern(...));
#ifndef CADASTRE_INTERPOSER_STACK_TREE_H_
#define CADASTRE_INTERPOSER_STACK_TREE_H_

#include <stdint.h>

#include "interposer/private_memory.h"

namespace cadastre {

class StackTree {
 public:
  static constexpr uint32_t kRoot = 1;  // the caller of the oldest frame
  static constexpr uint32_t kMostSiblings = 32;

  constexpr StackTree() = default;
  StackTree(const StackTree&) = delete;
  StackTree& operator=(const StackTree&) = delete;

  // Room for `capacity` nodes. Without memory there is none. Before other threads use it.
  void Init(uint32_t capacity) {
    nodes_ = ReserveMemory<Node>((capacity + kFirst) * sizeof(Node));
    end_ = nodes_ != nullptr ? capacity + kFirst : 0;
  }

  // The node of `frame` as called from `caller`. 0: no room, here or in the list of siblings.
  __attribute__((always_inline)) uint32_t Child(uint32_t caller, uint64_t frame) {
    if (__builtin_expect(end_ == 0, 0)) return 0;
    const uint32_t youngest = __atomic_load_n(&nodes_[caller].child, __ATOMIC_ACQUIRE);
    uint32_t siblings = 0;
    for (uint32_t node = youngest; node != 0; node = nodes_[node].sibling) {
      if (nodes_[node].frame == frame) return node;
      if (++siblings == kMostSiblings) return 0;
    }
    return Make(caller, youngest, frame);
  }

  // 0: not said yet.
  uint32_t site(uint32_t node) const { return __atomic_load_n(&nodes_[node].site, __ATOMIC_RELAXED); }
  void SetSite(uint32_t node, uint32_t site) { __atomic_store_n(&nodes_[node].site, site, __ATOMIC_RELAXED); }

 private:
  static constexpr uint32_t kFirst = kRoot + 1;

  struct Node {
    uint64_t frame;
    uint32_t child, sibling;
    uint32_t site;
    uint32_t unused;
  };
  static_assert(sizeof(Node) == 24);

  __attribute__((noinline)) uint32_t Make(uint32_t caller, uint32_t youngest, uint64_t frame) {
    if (__atomic_load_n(&next_, __ATOMIC_RELAXED) >= end_) return 0;
    const uint32_t made = __atomic_fetch_add(&next_, 1, __ATOMIC_RELAXED);
    if (made >= end_) return 0;
    nodes_[made].frame = frame;
    do {
      nodes_[made].sibling = youngest;
    } while (
        !__atomic_compare_exchange_n(&nodes_[caller].child, &youngest, made, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return made;
  }

  Node* nodes_ = nullptr;
  uint32_t next_ = kFirst, end_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_STACK_TREE_H_

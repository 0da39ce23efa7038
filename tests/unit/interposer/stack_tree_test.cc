// Why: a node that two stacks share charges one stack's memory to the other's owner. Here with made-up frames, at the
// limits, and by threads at once; that nodes stand for what a walk finds is shown by the oracle's programs
// (stack_oracle.cc).
#include "interposer/stack_tree.h"

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

using Frames = std::vector<uint64_t>;  // oldest first

uint32_t NodeOf(StackTree* tree, const Frames& frames) {
  uint32_t node = StackTree::kRoot;
  for (const uint64_t frame : frames) node = node != 0 ? tree->Child(node, frame) : 0;
  return node;
}

Frames AnyFrames(std::mt19937_64* random) {
  Frames frames(1 + (*random)() % 30);
  for (uint64_t& frame : frames) frame = 1 + (*random)() % 3;
  return frames;
}

TEST_CASE("Equal stacks end in one node, and different ones in different nodes", "[stack_tree]") {
  StackTree tree;
  tree.Init(1 << 20);
  std::mt19937_64 random(1);
  std::map<Frames, uint32_t> nodes;
  std::map<uint32_t, Frames> stacks;
  for (int i = 0; i < 20000; i++) {
    const Frames frames = AnyFrames(&random);
    const uint32_t node = NodeOf(&tree, frames);
    REQUIRE(node > StackTree::kRoot);
    REQUIRE(nodes.emplace(frames, node).first->second == node);
    REQUIRE(stacks.emplace(node, frames).first->second == frames);
  }
}

TEST_CASE("A node says which site its stack has, once that is known", "[stack_tree]") {
  StackTree tree;
  tree.Init(100);
  const uint32_t node = NodeOf(&tree, {7, 8}), other = NodeOf(&tree, {8, 7});
  CHECK(tree.site(node) == 0);
  tree.SetSite(node, 33);
  CHECK(tree.site(node) == 33);
  CHECK(tree.site(other) == 0);
}

TEST_CASE("Without room nothing is made, and what is there is found", "[stack_tree]") {
  StackTree empty;
  CHECK(empty.Child(StackTree::kRoot, 5) == 0);
  StackTree tree;
  tree.Init(10);
  Frames deep;
  for (uint64_t i = 1; i <= 10; i++) deep.push_back(i);
  const uint32_t last = NodeOf(&tree, deep);
  REQUIRE(last != 0);
  for (int i = 0; i < 1000; i++) {
    CHECK(tree.Child(last, 11) == 0);
    CHECK(tree.Child(StackTree::kRoot, 11) == 0);
  }
  CHECK(NodeOf(&tree, deep) == last);
}

TEST_CASE("A frame with many callees has no more of them than a search may cost", "[stack_tree]") {
  StackTree tree;
  tree.Init(1000);
  std::vector<uint32_t> made;
  for (uint64_t frame = 1; frame <= 100; frame++) made.push_back(tree.Child(StackTree::kRoot, frame));
  for (uint64_t frame = 1; frame <= 100; frame++) {
    CHECK((made[frame - 1] != 0) == (frame <= StackTree::kMostSiblings));
    CHECK(tree.Child(StackTree::kRoot, frame) == made[frame - 1]);
  }
}

TEST_CASE("Threads that bring the same stacks at once never share a node between different ones", "[stack_tree]") {
  constexpr int kThreads = 4, kStacks = 5000;
  StackTree tree;
  tree.Init(1 << 20);
  std::atomic<int> waiting{kThreads};
  std::vector<std::vector<std::pair<Frames, uint32_t>>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(5);
      waiting--;
      while (waiting > 0) {
      }
      for (int i = 0; i < kStacks; i++) {
        const Frames frames = AnyFrames(&random);
        seen[t].emplace_back(frames, NodeOf(&tree, frames));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::map<uint32_t, Frames> stacks;
  for (const auto& of_thread : seen) {
    for (const auto& [frames, node] : of_thread) {
      REQUIRE(node != 0);
      REQUIRE(stacks.emplace(node, frames).first->second == frames);
    }
  }
}

}  // namespace
}  // namespace cadastre

// What a compiler reads most of: the standard library, and templates of it.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <ranges>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N>
struct Record {
  std::map<std::string, std::vector<std::variant<int, double, std::string>>> fields;
  std::unordered_map<int, std::shared_ptr<Record<N - 1>>> children;
  auto Sorted() const {
    std::vector<std::string> names;
    for (const auto& [name, values] : fields) names.push_back(name);
    std::ranges::sort(names, std::greater<>());
    return names;
  }
};
template <>
struct Record<0> {};

std::vector<std::string> Names(const Record<24>& record) {
  std::regex pattern("[a-z]+([0-9]*)");
  auto names = record.Sorted();
  std::erase_if(names, [&](const std::string& name) { return !std::regex_match(name, pattern); });
  return names;
}

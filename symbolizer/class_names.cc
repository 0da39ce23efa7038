#include "symbolizer/class_names.h"

#include <algorithm>
#include <utility>

#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

constexpr std::pair<char, std::string_view> kPrimitives[] = {{'B', "byte"},  {'C', "char"},   {'D', "double"},
                                                             {'F', "float"}, {'I', "int"},    {'J', "long"},
                                                             {'S', "short"}, {'Z', "boolean"}};

struct ClassParts {
  std::string element;  // as the source spells it
  char descriptor = 0;  // of a primitive element; 0 = a class
  size_t dimensions = 0;
};

ClassParts PartsOf(std::string_view name) {
  ClassParts parts;
  if (!name.empty() && name[0] == '[') {
    size_t dimensions = name.find_first_not_of('[');
    std::string_view element = dimensions == std::string_view::npos ? "" : name.substr(dimensions);
    for (const auto& [letter, word] : kPrimitives) {
      if (element.size() == 1 && element[0] == letter) {
        parts = {std::string(word), letter, dimensions};
        return parts;
      }
    }
    if (element.size() > 2 && element.front() == 'L' && element.back() == ';') {
      parts.element = element.substr(1, element.size() - 2);
      parts.dimensions = dimensions;
    }
  }
  if (parts.element.empty()) {
    while (name.size() > 2 && name.substr(name.size() - 2) == "[]") {
      name.remove_suffix(2);
      parts.dimensions++;
    }
    parts.element = name;
    for (const auto& [letter, word] : kPrimitives) {
      if (name == word) parts.descriptor = letter;
    }
  }
  // A name with dots is spelled as the source does; a slash in it belongs to a hidden class ("Foo$$Lambda/0x0123").
  if (parts.element.find('.') == std::string::npos) std::replace(parts.element.begin(), parts.element.end(), '/', '.');
  return parts;
}

std::string SourceSpelling(const ClassParts& parts) {
  std::string name = parts.element;
  for (size_t i = 0; i < parts.dimensions; i++) name += "[]";
  return name;
}

}  // namespace

std::string SourceClassName(std::string_view class_name) { return SourceSpelling(PartsOf(class_name)); }

std::vector<std::string> ClassNames(std::string_view class_name) {
  ClassParts parts = PartsOf(class_name);
  std::vector<std::string> names = {SourceSpelling(parts)};
  if (parts.descriptor == 0) names.push_back(parts.element + ".");
  if (parts.dimensions > 0) {
    std::string name(parts.dimensions, '[');
    names.push_back(parts.descriptor != 0 ? name + parts.descriptor : name + "L" + parts.element + ";");
  }
  return names;
}

}  // namespace cadastre

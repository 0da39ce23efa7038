// Frames as people and tools write them: in collapsed stacks, in reports, on the command line.
//
//   acme::billing::Writer::Grow(unsigned long)      a function, with or without parameters
//   com.acme.Invoice.add   com/acme/Invoice.add_[j]  Java, as jstack and as async-profiler write it
//   void com.acme.Invoice.add(int)   com/acme/Invoice.add(Ljava/lang/String|)V   with its types, as javap and
//   async-profiler write them; java.base@21/java.util.zip.Deflater.init, app//com.acme.Invoice.add   with its module
//   deflateInit2_ (libz.so.1)   Invoice.add (Invoice.java:88)   as `cadastre report` prints it
//   libz.so.1!deflateInit2_   libz.so.1`deflateInit2_           a function of a library
//   [libz.so.1]   libz.so.1+0x2f10                  a library, the function is not known
//   lib:/usr/lib/libz.so.1   src:services/x.cc      as a rule would name it
// Errors: none; what is not understood is a function of that name. Thread-safety: pure functions.
//
// Example: const Rule* rule = FindRuleOfText(owner, "deflateInit2_ (libz.so.1)");
#ifndef CADASTRE_REPORT_FRAME_TEXT_H_
#define CADASTRE_REPORT_FRAME_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/frame_owner.h"
#include "symbolizer/profile.h"

namespace cadastre {

// What the text may mean, likeliest first: without return type and parameters, as frames of profiles are, then as it
// stands. Without parameters nothing tells a return type from a name with a blank in it. Never empty.
std::vector<Frame> ReadingsOfText(std::string_view text);

// The rule of the first reading that has one, or nullptr.
const Rule* FindRuleOfText(const FrameOwner& owner, std::string_view text);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FRAME_TEXT_H_

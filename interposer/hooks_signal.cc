// The functions that set what a signal does: tail jumps, but for SIGBUS while bus_guard.h stands before the program's
// action. siginterrupt changes a flag of the action; the rest of the family sets one in its own way, and is believed.
#include <signal.h>

#include "interposer/bus_guard.h"
#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"

namespace {

using cadastre::NextFunction;

bool IsGuarded(int signal) { return signal == SIGBUS && cadastre::BusGuardIsOn(); }

using SetHandler = sighandler_t(int, sighandler_t);

sighandler_t Set(const char* name, void** slot, int signal, sighandler_t handler) {
  SetHandler* real = NextFunction<SetHandler>(slot, name);
  if (!IsGuarded(signal)) return real(signal, handler);
  return cadastre::BusGuardAdopt(real(signal, handler));
}

int Change(int result) {
  if (result == 0) cadastre::BusGuardAdopt(nullptr);
  return result;
}

void *real_sigaction, *real_signal, *real_bsd_signal, *real_ssignal, *real_sysv_signal, *real_own_sysv_signal,
    *real_sigset, *real_sigignore, *real_siginterrupt;

}  // namespace

CADASTRE_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
  if (IsGuarded(signal)) return cadastre::BusGuardSetAction(action, old);
  return NextFunction<decltype(sigaction)>(&real_sigaction, "sigaction")(signal, action, old);
}

CADASTRE_EXPORT sighandler_t signal(int signal, sighandler_t handler) {
  return Set("signal", &real_signal, signal, handler);
}
CADASTRE_EXPORT sighandler_t bsd_signal(int signal, sighandler_t handler) {
  return Set("bsd_signal", &real_bsd_signal, signal, handler);
}
CADASTRE_EXPORT sighandler_t ssignal(int signal, sighandler_t handler) {
  return Set("ssignal", &real_ssignal, signal, handler);
}
CADASTRE_EXPORT sighandler_t sysv_signal(int signal, sighandler_t handler) {
  return Set("sysv_signal", &real_sysv_signal, signal, handler);
}
CADASTRE_EXPORT sighandler_t __sysv_signal(int signal, sighandler_t handler) {
  return Set("__sysv_signal", &real_own_sysv_signal, signal, handler);
}
CADASTRE_EXPORT sighandler_t sigset(int signal, sighandler_t handler) {
  return Set("sigset", &real_sigset, signal, handler);
}

CADASTRE_EXPORT int sigignore(int signal) {
  auto* real = NextFunction<int(int)>(&real_sigignore, "sigignore");
  return IsGuarded(signal) ? Change(real(signal)) : real(signal);
}

CADASTRE_EXPORT int siginterrupt(int signal, int interrupts) {
  auto* real = NextFunction<int(int, int)>(&real_siginterrupt, "siginterrupt");
  return IsGuarded(signal) ? Change(real(signal, interrupts)) : real(signal, interrupts);
}

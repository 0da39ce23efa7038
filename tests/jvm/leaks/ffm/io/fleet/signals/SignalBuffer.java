package io.fleet.signals;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.shop.server.Held;
import org.shop.server.Service;

/** malloc by a critical call, which leaves no mark in the thread that it is in native code. */
public final class SignalBuffer implements Service {
  private static final int SIGNALS = 2_000;
  private static final FunctionDescriptor MALLOC = FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);

  @Override
  public Held serve() throws Throwable {
    Linker linker = Linker.nativeLinker();
    MethodHandle malloc =
        linker.downcallHandle(linker.defaultLookup().find("malloc").orElseThrow(), MALLOC, Linker.Option.critical(false));
    long bytes = 0;
    for (int signal = 0; signal < SIGNALS; signal++) bytes += record(malloc, 4_000 + signal);
    return Held.bytes(bytes);
  }

  private static long record(MethodHandle malloc, long bytes) throws Throwable {
    return ((MemorySegment) malloc.invokeExact(bytes)).address() == 0 ? 0 : bytes;
  }
}

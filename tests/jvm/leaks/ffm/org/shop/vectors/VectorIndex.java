package org.shop.vectors;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.shop.server.Held;
import org.shop.server.Service;

/** malloc itself, found by the linker's default look-up and called from Java: no library of anybody's in between. */
public final class VectorIndex implements Service {
  private static final int VECTORS = 2_000;
  private static final FunctionDescriptor MALLOC = FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);

  @Override
  public Held serve() throws Throwable {
    Linker linker = Linker.nativeLinker();
    MethodHandle malloc = linker.downcallHandle(linker.defaultLookup().find("malloc").orElseThrow(), MALLOC);
    long bytes = 0;
    for (int vector = 0; vector < VECTORS; vector++) bytes += add(malloc, 4_000 + vector);
    return Held.bytes(bytes);
  }

  private static long add(MethodHandle malloc, long bytes) throws Throwable {
    return ((MemorySegment) malloc.invokeExact(bytes)).address() == 0 ? 0 : bytes;
  }
}

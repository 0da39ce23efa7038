package io.fleet.cache;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import org.shop.server.Held;
import org.shop.server.Service;

/** An off-heap cache on sun.misc.Unsafe, found by reflection as libraries do, whose eviction forgets freeMemory. */
public final class OffHeapCache implements Service {
  private static final int ENTRIES = 3_000;

  @Override
  public Held serve() throws Throwable {
    Class<?> type = Class.forName("sun.misc.Unsafe");
    Field field = type.getDeclaredField("theUnsafe");
    field.setAccessible(true);
    MethodHandle allocate =
        MethodHandles.lookup()
            .findVirtual(type, "allocateMemory", MethodType.methodType(long.class, long.class))
            .bindTo(field.get(null));
    long bytes = 0;
    for (int entry = 0; entry < ENTRIES; entry++) bytes += put(allocate, 3_000 + entry);
    return Held.bytes(bytes);
  }

  private static long put(MethodHandle allocate, long size) throws Throwable {
    return (long) allocate.invokeExact(size) == 0 ? 0 : size;
  }
}
